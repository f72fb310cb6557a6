"""The value of a published skill's entry: a dataclass, and its conversion from and to JSON."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Final

from marketplace.errors import MalformedRecord
from vskill.accounts.audiences import PUBLIC, is_audience


class Visibility(StrEnum):
    """Whether a skill is shown. Both other values withhold it: quarantine for now, deletion as a tombstone."""

    VISIBLE = "visible"
    QUARANTINED = "quarantined"
    DELETED = "deleted"


_LETTERS: Final = {Visibility.QUARANTINED: "q/", Visibility.DELETED: "d/"}


def shown_as(visibility: str, audience: str) -> str:
    """Return how an entry says in one word whether it is shown and to whom: ``visible``, ``members``, ``q/team:7``.

    An earlier release knows none of the words about an audience, and shows nothing that has one.
    """
    return f"{_LETTERS.get(Visibility(visibility), '')}{audience}" if audience else str(visibility)


def read_shown_as(word: str) -> tuple[Visibility, str]:
    """Return the visibility and the audience in a word of ``shown_as``; raise ``ValueError`` for any other."""
    for visibility in Visibility:
        if word == visibility:
            return visibility, PUBLIC
    for visibility, start in (*_LETTERS.items(), (Visibility.VISIBLE, "")):
        audience = word.removeprefix(start)
        if word.startswith(start) and audience and is_audience(audience):
            return visibility, audience
    raise ValueError(f"no visibility: {word!r}")


def read_audience(word: str) -> str | None:
    """Return the audience in a word of ``shown_as``, ``None`` (nobody) for any other."""
    try:
        return read_shown_as(word)[1]
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class SkillRecord:
    """A published skill.

    ``name``, ``display_name``, ``description``, ``license``, ``compatibility``, ``tags``, ``commit_sha``,
    ``content_hash``, ``verdict``, ``verdict_summary``, ``flag_reason`` and ``submission_id`` are copied from the
    version ``latest_version``, which is empty where every version is withdrawn. ``capabilities`` are all that this one
    can do, by the names of ``skills.capability_names``.

    ``publisher`` is the owner's identity, ``host/owner`` in lower case, and ``publisher_handle`` the short name in
    URLs. ``repo_url`` is the URL of the repository, ``skill_path`` the skill's folder in it, and ``identity`` a hash
    of both; ``also_at`` are other folders with the same content. ``source_gone_at`` is when a later commit,
    ``source_gone_commit``, was seen without the folder; both are empty while the source has it. ``visibility`` is one
    of ``Visibility``, with the operator's ``visibility_reason``, and ``audience`` to whom it is shown where it is
    visible, empty for everybody; the value has both in one word, that of ``shown_as``. ``published_at``,
    ``updated_at`` and ``source_gone_at`` are ISO texts in UTC.
    """

    slug: str
    name: str
    visibility: str = Visibility.VISIBLE
    display_name: str = ""
    description: str = ""
    publisher: str = ""
    publisher_handle: str = ""
    repo_url: str = ""
    skill_path: str = ""
    identity: str = ""
    license: str = ""
    compatibility: str = ""
    tags: tuple[str, ...] = ()
    latest_version: str = ""
    commit_sha: str = ""
    content_hash: str = ""
    verdict: str = ""
    verdict_summary: str = ""
    flag_reason: str = ""
    capabilities: tuple[str, ...] = ()
    visibility_reason: str = ""
    submission_id: str = ""
    also_at: tuple[str, ...] = ()
    source_gone_at: str = ""
    source_gone_commit: str = ""
    published_at: str = ""
    updated_at: str = ""
    audience: str = PUBLIC

    @property
    def shown_as(self) -> str:
        """Return the word of the visibility and the audience, which the entry has in its column."""
        return shown_as(self.visibility, self.audience)

    def to_value(self) -> dict[str, Any]:
        """Return the value of the entry: names in camel case, tuples as lists."""
        value: dict[str, Any] = {}
        for attribute, name in _NAMES.items():
            held = getattr(self, attribute)
            value[name] = list(held) if isinstance(held, tuple) else str(held)
        return {**value, "visibility": self.shown_as}

    @classmethod
    def from_value(cls, value: Any) -> SkillRecord:
        """Return the record in a decoded value; raise ``MalformedRecord`` where the value is no skill."""
        if not isinstance(value, dict):
            raise MalformedRecord("The value is not an object.")
        found: dict[str, Any] = {}
        for attribute, name in _NAMES.items():
            held = value.get(name)
            if attribute in _LISTS:
                found[attribute] = _texts(held)
            else:
                found[attribute] = held if isinstance(held, str) else ""
        if not found["slug"] or not found["name"]:
            raise MalformedRecord("The value has no slug or no name.")
        try:
            found["visibility"], found["audience"] = read_shown_as(found["visibility"])
        except ValueError as error:
            known = f"The value has no visibility that is known: {found['visibility']!r}."
            raise MalformedRecord(known) from error
        return cls(**found)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_NAMES: Final = {field.name: _camel(field.name) for field in fields(SkillRecord) if field.name != "audience"}
_LISTS: Final = frozenset({"tags", "capabilities", "also_at"})
