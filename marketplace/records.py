"""A published skill as the value of its entry has it: one dataclass, and its way from and to JSON."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Final

from marketplace.errors import MalformedRecord


class Visibility(StrEnum):
    """Whether a skill is shown: to everybody, to nobody for now, or to nobody until it is gone."""

    VISIBLE = "visible"
    QUARANTINED = "quarantined"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class SkillRecord:
    """A published skill.

    What describes it (name to verdict) is copied from its latest version. ``publisher`` is the owner's identity,
    ``host/owner`` in lower case; ``publisher_handle`` is the short name in addresses. Times are ISO texts in UTC.
    ``latest_version`` is empty where every version is withdrawn.
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
    capabilities: tuple[str, ...] = ()
    visibility_reason: str = ""
    submission_id: str = ""
    published_at: str = ""
    updated_at: str = ""

    def to_value(self) -> dict[str, Any]:
        """Return the value of the entry: camel case, lists for tuples."""
        value: dict[str, Any] = {}
        for attribute, name in _NAMES.items():
            held = getattr(self, attribute)
            value[name] = list(held) if isinstance(held, tuple) else str(held)
        return value

    @classmethod
    def from_value(cls, value: Any) -> SkillRecord:
        """Return the record of a value; raise ``MalformedRecord`` where it is none."""
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
        if found["visibility"] not in set(Visibility):
            raise MalformedRecord(f"The value has no visibility that is known: {found['visibility']!r}.")
        return cls(**found)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_NAMES: Final = {field.name: _camel(field.name) for field in fields(SkillRecord)}
_LISTS: Final = frozenset({"tags", "capabilities"})
