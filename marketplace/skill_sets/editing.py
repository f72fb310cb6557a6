"""Make, change and delete collections: each is one transaction with a line in the history."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from marketplace.catalog import find_skill_sync, is_visible
from marketplace.errors import MarketplaceError
from marketplace.models import Collection, CollectionSkill, SkillEntry
from marketplace.skill_sets.reading import all_collections, offered_versions
from marketplace.skills.moderation import ReasonMissing
from marketplace.skills.slugs import is_slug
from marketplace.skills.store import record_event
from marketplace.skills.withdrawal import nothing_offered, withheld
from vskill.environments import WorkerEnv
from vskill.hidden_characters import reveal_hidden, visible
from vskill.kv.codec import storable

# Clients download every skill of a set.
MOST_SKILLS: Final = 100
MOST_TITLE: Final = 100
MOST_PURPOSE: Final = 300
MOST_NOTE: Final = 300
SUBJECT_PREFIX: Final = "collection:"
_LINE: Final = re.compile(r"(?P<slug>[^\s@]+)(?:@(?P<version>\S+))?(?:\s+(?P<note>.*))?")


class InvalidCollection(MarketplaceError):
    """What an operator wrote of a collection cannot be kept; nothing was changed."""

    code = "invalid_collection"


class CollectionChanged(MarketplaceError):
    """A collection was changed or deleted by somebody else meanwhile; nothing was changed."""

    code = "collection_changed"


@dataclass(frozen=True)
class Choice:
    """A skill that an operator chose: its slug, the version to pin it to or nothing, and a note or nothing."""

    slug: str
    version: str = ""
    note: str = ""


@dataclass(frozen=True)
class Told:
    """What an operator says of a collection: title, purpose, and its skills in their order."""

    title: str
    purpose: str
    choices: tuple[Choice, ...]


def read_choices(text: str) -> tuple[Choice, ...]:
    """Return the skills in a text of one line each: ``slug``, or ``slug@version``, and after a space a note.

    Empty lines are passed over. Raises ``InvalidCollection`` for a line that is none of these.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise InvalidCollection(f"Line {number} is no skill: {visible(line.strip(), 80)!r}. Write its name first.")
        found.append(Choice(match["slug"], match["version"] or "", (match["note"] or "").strip()))
    return tuple(found)


def written_choices(env: WorkerEnv, collection: Collection) -> str:
    """Return the skills of a collection as ``read_choices`` reads them, also those that are withdrawn."""
    return "\n".join(
        f"{row.skill.slug}{f'@{row.version}' if row.version else ''}{f' {row.note}' if row.note else ''}"
        for row in _members(env, collection)
    )


def create_collection(env: WorkerEnv, slug: str, told: Told, *, actor: str, reason: str) -> Collection:
    """Make a collection and return it; ``actor`` and ``reason`` go into the history.

    Raises ``InvalidCollection`` for a slug that is taken or none, and for skills and versions that are not offered, and
    ``ReasonMissing``.
    """
    _require(reason)
    if not is_slug(slug):
        raise InvalidCollection(
            f"{visible(slug, 80)!r} is no address: use lower-case letters, digits and single hyphens, 64 at most."
        )
    title, purpose = _texts(told)
    try:
        with transaction.atomic(using=env.database):
            collection: Collection = Collection.objects.using(env.database).create(
                namespace=env.name, slug=slug, title=title, purpose=purpose
            )
            _write_members(env, collection, told.choices)
            _record(env, collection, "collection made", actor, reason)
    except IntegrityError as error:
        if not all_collections(env).filter(slug=slug).exists():
            raise
        raise InvalidCollection(f"There is a collection {slug!r} already. Change that one.") from error
    return collection


def change_collection(
    env: WorkerEnv, collection: Collection, told: Told, *, revision: int, actor: str, reason: str
) -> None:
    """Replace what a collection says and holds; ``actor``, ``reason`` and what came and went go into the history.

    ``revision`` is that of the collection when the operator read it. Skills that it holds already may stay although
    they are withdrawn. Raises ``CollectionChanged``, and as ``create_collection`` does.
    """
    _require(reason)
    title, purpose = _texts(told)
    with transaction.atomic(using=env.database):
        # The row is written first, so that two operators are told apart before anything is read.
        present = all_collections(env).filter(pk=collection.pk, revision=revision)
        if not present.update(title=title, purpose=purpose, revision=F("revision") + 1, changed_at=Now()):
            raise CollectionChanged(
                "Somebody else changed or deleted this collection meanwhile. Nothing was changed: open it again."
            )
        before = {row.skill.slug: row.version for row in _members(env, collection)}
        _write_members(env, collection, told.choices)
        after = {row.skill.slug: row.version for row in _members(env, collection)}
        _record(env, collection, "collection changed", actor, f"{reason}{_difference(before, after)}")


def delete_collection(env: WorkerEnv, collection: Collection, *, actor: str, reason: str) -> None:
    """Delete a collection; its skills stay as they are. ``actor`` and ``reason`` go into the history.

    Raises ``CollectionChanged`` where it is gone already, and ``ReasonMissing``.
    """
    _require(reason)
    with transaction.atomic(using=env.database):
        if not all_collections(env).filter(pk=collection.pk).delete()[0]:
            raise CollectionChanged("Somebody else deleted this collection meanwhile.")
        _record(env, collection, "collection deleted", actor, reason)


def _require(reason: str) -> None:
    if not reason.strip():
        raise ReasonMissing("Say why: the reason is kept in the history. Nothing was changed.")


def _texts(told: Told) -> tuple[str, str]:
    title, purpose = (reveal_hidden(storable(" ".join(text.split()))) for text in (told.title, told.purpose))
    if not title or not purpose:
        raise InvalidCollection("A collection has a title, and a sentence that says what it is for.")
    return title[:MOST_TITLE], purpose[:MOST_PURPOSE]


def _record(env: WorkerEnv, collection: Collection, action: str, actor: str, reason: str) -> None:
    record_event(env, f"{SUBJECT_PREFIX}{collection.slug}", action, actor=actor, reason=reason)


def _members(env: WorkerEnv, collection: Collection) -> list[CollectionSkill]:
    rows = CollectionSkill.objects.using(env.database).filter(collection_id=collection.pk).select_related("skill")
    return list(rows.order_by("position", "pk"))


def _write_members(env: WorkerEnv, collection: Collection, choices: Sequence[Choice]) -> None:
    if len(choices) > MOST_SKILLS:
        raise InvalidCollection(f"{len(choices)} skills were named. A collection has at most {MOST_SKILLS}.")
    held = {row.skill_id: row.version for row in _members(env, collection)}
    chosen: dict[int, CollectionSkill] = {}
    for position, choice in enumerate(choices, 1):
        skill = find_skill_sync(env, choice.slug, hidden=True)
        if skill is None:
            raise InvalidCollection(f"Skill {position}: there is none of the name {visible(choice.slug, 80)!r} here.")
        if skill.pk in chosen:
            raise InvalidCollection(f"Skill {position}: {skill.slug!r} is named twice.")
        if held.get(skill.pk) != choice.version:
            _check_offered(env, skill, choice.version, position)
        note = reveal_hidden(storable(" ".join(choice.note.split())))[:MOST_NOTE]
        chosen[skill.pk] = CollectionSkill(
            collection_id=collection.pk, skill_id=skill.pk, position=position, version=choice.version, note=note
        )
    CollectionSkill.objects.using(env.database).filter(collection_id=collection.pk).delete()
    CollectionSkill.objects.using(env.database).bulk_create(chosen.values())


def _check_offered(env: WorkerEnv, skill: SkillEntry, version: str, position: int) -> None:
    """Raise ``InvalidCollection`` where a skill that comes into a collection could not be shown in it."""
    if not is_visible(skill):
        raise InvalidCollection(f"Skill {position}, {skill.slug!r}: {withheld(skill)}")
    if not version and not skill.latest_version:
        raise InvalidCollection(f"Skill {position}, {skill.slug!r}: {nothing_offered(env, skill)}")
    if version and not offered_versions(env, {(skill.pk, version)}).exists():
        raise InvalidCollection(
            f"Skill {position}: {skill.slug!r} offers no version {visible(version, 64)!r}. Its latest is "
            f"{skill.latest_version or 'withdrawn'}."
        )


def _difference(before: dict[str, str], after: dict[str, str]) -> str:
    """Return what came, went and was pinned otherwise, in brackets; empty where the skills are the same."""
    parts = [f"added {slug}" for slug in after if slug not in before]
    parts += [f"took out {slug}" for slug in before if slug not in after]
    both = [slug for slug in after if slug in before and after[slug] != before[slug]]
    parts += [f"{slug}: {before[slug] or 'latest'} to {after[slug] or 'latest'}" for slug in both]
    return f" ({', '.join(parts)})" if parts else ""
