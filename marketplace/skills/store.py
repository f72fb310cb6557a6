"""Write a skill: its entry, search tokens, facets, counts and history, all in the transaction of the caller.

Everything that changes a skill goes through this module, so lists, facets, search and history always agree with the
entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from marketplace.errors import SkillNotFound
from marketplace.models import ALIAS_PREFIX, SKILL_PREFIX, HistoryEvent, SkillEntry, SkillVersion
from marketplace.models.derived import SkillFacet
from marketplace.provenance.entries import note_change
from marketplace.records import SkillRecord
from marketplace.search.documents import index_skill, renew_filters
from marketplace.skill_changes import SkillChange, skill_changed
from marketplace.skills.agents import agents_of
from marketplace.skills.counts import Key, change_counts, counted, facets_of
from marketplace.skills.places import note_changed_places
from vskill.environments import WorkerEnv
from vskill.hidden_characters import reveal_hidden
from vskill.kv.clock import database_now, isoformat
from vskill.kv.codec import encode, storable
from vskill.kv.errors import VersionConflict
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Outcome

ATTEMPTS: Final = 5
T = TypeVar("T")


@dataclass(frozen=True)
class Event:
    """One line of a skill's history: what was done (``published``, ``yanked``), by whom, why, and to which version.

    ``version`` is empty where the event concerns the whole skill, and ``by_publisher`` is true where its publisher did
    it and may undo it.
    """

    action: str
    actor: str
    reason: str = ""
    version: str = ""
    by_publisher: bool = False


def skill_namespace(env: WorkerEnv) -> KVNamespace:
    """Return the KV namespace of an environment's skills and aliases."""
    return KVNamespace(SkillEntry, env)


def now_text(env: WorkerEnv) -> str:
    """Return the time by the database's clock as values store it: an ISO text in UTC."""
    return isoformat(database_now(env.database))


def in_transaction(env: WorkerEnv, work: Callable[[], T]) -> T:
    """Run ``work`` in a transaction and return its result; run it again when it loses a race.

    A lost race is a ``VersionConflict`` or an ``IntegrityError``; the next attempt reads what the winner wrote. After
    ``ATTEMPTS`` attempts the error of the last one is raised. Nothing of a failed attempt is kept.
    """
    for _attempt in range(ATTEMPTS - 1):
        try:
            with transaction.atomic(using=env.database):
                return work()
        except (IntegrityError, VersionConflict):
            continue
    with transaction.atomic(using=env.database):
        return work()


def locked_skill(env: WorkerEnv, slug: str) -> SkillEntry:
    """Return the row of a skill, locked until the transaction ends; raise ``SkillNotFound`` where there is none.

    SQLite has no row locks and needs none: it runs one writing transaction at a time.
    """
    rows = SkillEntry.objects.using(env.database).select_for_update()
    row: SkillEntry | None = rows.filter(namespace=env.name, key=f"{SKILL_PREFIX}{slug}").first()
    if row is None or row.is_alias:
        raise SkillNotFound(f"There is no skill {slug!r} in {env.name!r}.")
    return row


def locked_skill_of(env: WorkerEnv, identity: str) -> SkillEntry | None:
    """Return the row of the skill with an identity, locked until the transaction ends, or ``None``.

    Publications of one skill wait for the lock instead of losing races.
    """
    return skills_of_identity(env, identity).select_for_update().first()


def skills_of_identity(env: WorkerEnv, identity: str) -> QuerySet[SkillEntry]:
    """Return the skill with an identity, as a query for at most one row."""
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name, identity=identity)
    return rows if identity else rows.none()


def name_of_identity(env: WorkerEnv, identity: str) -> str | None:
    """Return the name of the skill with an identity, or ``None`` where none is published."""
    names = skills_of_identity(env, identity).values_list("name", flat=True)
    found: str | None = names.first()
    return found


def slug_is_taken(env: WorkerEnv, slug: str, *, own_slug: str = "") -> bool:
    """Return whether a skill has ``slug``, or had it before; a former slug of the skill ``own_slug`` is not taken."""
    skill, alias = skill_namespace(env).get_few_sync((f"{SKILL_PREFIX}{slug}", f"{ALIAS_PREFIX}{slug}"))
    return bool(skill.version) or _leads_to_another(alias, own_slug)


def _is_alias_of_another(env: WorkerEnv, slug: str, own_slug: str = "") -> bool:
    return _leads_to_another(skill_namespace(env).get_sync(f"{ALIAS_PREFIX}{slug}"), own_slug)


def _leads_to_another(alias: Outcome, own_slug: str) -> bool:
    return bool(alias.version) and not (own_slug and alias.value == own_slug)


def create_skill(env: WorkerEnv, record: SkillRecord, event: Event) -> SkillEntry:
    """Write a new skill with one version, published now, and return its row.

    Raises ``VersionConflict`` where its slug is taken.
    """
    now = now_text(env)
    record = replace(record, published_at=now, updated_at=now)
    key = f"{SKILL_PREFIX}{record.slug}"
    skill_namespace(env).put_sync(key, record.to_value(), expect_version=0)
    if _is_alias_of_another(env, record.slug):
        # A rename left this alias after the caller chose the slug: its address must not lead to a stranger's skill.
        raise VersionConflict(f"{record.slug!r} has become the former name of another skill.")
    row: SkillEntry = SkillEntry.objects.using(env.database).get(namespace=env.name, key=key)
    note_changed_places(env, row, None, record)
    _write_derived(env, row, record, event)
    change_counts(env, counted(None), counted(record, 1))
    return row


def update_skill(
    env: WorkerEnv, row: SkillEntry, record: SkillRecord, event: Event, *, kept: tuple[int, int]
) -> SkillRecord:
    """Write ``record`` over the skill in ``row`` and return it with its new ``updated_at``.

    ``kept`` is how many of its versions are not in quarantine, before and after this. Raises ``VersionConflict`` where
    another writer changed the row after it was read.
    """
    record = replace(record, updated_at=now_text(env))
    skill_namespace(env).put_sync(row.key, record.to_value(), expect_version=row.version)
    note_changed_places(env, row, row.record, record)
    _write_derived(env, row, record, event)
    change_counts(env, counted(row.record, kept[0]), counted(record, kept[1]))
    return record


def note(env: WorkerEnv, row: SkillEntry, record: SkillRecord, event: Event) -> SkillRecord:
    """Write over the skill in ``row`` what has become known of it: of its source, or a flag; return ``record``.

    ``record`` differs in that alone, and ``event`` goes into the history. What the skill offers stays as it is, so
    neither its ``updated_at`` nor its order in lists and search change; a place can say one more agent. ``env`` is its
    environment. Raises ``VersionConflict`` where another writer changed the row after it was read.
    """
    before = row.record
    skill_namespace(env).put_sync(row.key, record.to_value(), expect_version=row.version)
    note_changed_places(env, row, before, record)
    if agents_of(before) != agents_of(record):
        renew_facets(env, row, record, counted(before))
    _record(env, row, event)
    return record


def write_capabilities(env: WorkerEnv, row: SkillEntry, capabilities: tuple[str, ...]) -> None:
    """Write what the latest version of the skill in ``row`` is now known to be able to do, with its facets and counts.

    Nothing that the skill offers has changed, so neither its ``updated_at`` nor its history do. Raises
    ``VersionConflict`` where another writer changed the row after it was read.
    """
    before = row.record
    record = replace(before, capabilities=capabilities)
    skill_namespace(env).put_sync(row.key, record.to_value(), expect_version=row.version)
    renew_facets(env, row, record, counted(before))


def renew_facets(env: WorkerEnv, row: SkillEntry, record: SkillRecord | None, before: Mapping[Key, int]) -> None:
    """Write the facets of the skill in ``row`` as ``record`` says, with the filters of its document and the counts.

    ``row`` is locked, and ``before`` is what the skill adds to the counts so far. ``None`` stands for an alias.
    """
    _write_facets(env, row, record)
    renew_filters(row, env.database)
    change_counts(env, before, counted(record))


def move_skill(env: WorkerEnv, row: SkillEntry, slug: str, *, actor: str, reason: str) -> SkillRecord:
    """Give the skill in ``row`` another slug, leave an alias at the old one, and return the new record.

    ``row`` is locked, and its ``key`` is changed as well. ``actor`` and ``reason`` go into the history and into the
    metadata of the alias. Raises ``VersionConflict`` where another writer changed the row or where ``slug`` is the
    former slug of another skill, ``IntegrityError`` where another skill has it.
    """
    namespace, before = skill_namespace(env), row.record
    moved = replace(before, slug=slug, updated_at=now_text(env))
    old_slug = row.key.removeprefix(SKILL_PREFIX)
    value = moved.to_value()
    # The row itself gets the new key, because versions, downloads and history refer to the row.
    rows = SkillEntry.objects.using(env.database).filter(pk=row.pk, version=row.version)
    columns = {
        "key": f"{SKILL_PREFIX}{slug}",
        "value": encode(value),
        "updated_at": Now(),
        **SkillEntry.project(value),
    }
    if not rows.write_row(version=F("version") + 1, **columns):
        raise VersionConflict(f"{row.key!r} was changed by another writer. Nothing was renamed: read it again.")
    if slug != old_slug:
        if _is_alias_of_another(env, slug, old_slug):
            raise VersionConflict(f"{slug!r} has become the former name of another skill. Nothing was renamed.")
        metadata = {"actor": actor, "reason": reason, "at": moved.updated_at}
        namespace.put_sync(f"{ALIAS_PREFIX}{old_slug}", slug, metadata=metadata)
        # A skill that takes back a former slug must not be its own alias.
        namespace.delete_sync(f"{ALIAS_PREFIX}{slug}")
    row.key = columns["key"]
    _write_derived(env, row, moved, Event("renamed", actor, f"from {old_slug}: {reason}"))
    change_counts(env, counted(before), counted(moved))
    return moved


def record_event(
    env: WorkerEnv,
    subject: str,
    action: str,
    *,
    actor: str,
    reason: str,
    row: SkillEntry | None = None,
    version: str = "",
    by_publisher: bool = False,
) -> None:
    """Append one event to the history, with what the log and people are told; call it in the transaction of the change.

    ``subject`` is the key of the entry that was changed and ``row`` its skill, ``None`` where the entry is no skill.
    ``action`` is a word such as ``blocked``; ``version`` names the version where the event concerns only one,
    and ``by_publisher`` is that of ``Event``. Hidden characters in ``reason`` are spelt out.
    """
    # Owners write some of them, and operators read all, in a terminal too.
    reason = reveal_hidden(storable(reason))
    event = HistoryEvent.objects.using(env.database).create(
        namespace=env.name,
        subject=subject,
        skill_id=row.pk if row is not None else None,
        action=action,
        version=version,
        actor=actor,
        reason=reason,
        by_publisher=by_publisher,
    )
    if row is not None:
        note_change(env, action, row, version)
        change = SkillChange(env, row, action, version, actor, reason, f"history:{event.pk}")
        skill_changed.send(sender=SkillChange, change=change)


def _write_derived(env: WorkerEnv, row: SkillEntry, record: SkillRecord, event: Event) -> None:
    # Before the document, which takes from them what filters ask for.
    _write_facets(env, row, record)
    versions = SkillVersion.objects.using(env.database).filter(skill_id=row.pk, version=record.latest_version)
    index_skill(row, record, versions.values_list("skill_md", flat=True).first() or "", env.database)
    _record(env, row, event)


def _write_facets(env: WorkerEnv, row: SkillEntry, record: SkillRecord | None) -> None:
    facets = SkillFacet.objects.using(env.database)
    facets.filter(skill_id=row.pk).delete()
    facets.bulk_create(
        SkillFacet(namespace=row.namespace, kind=kind, value=value, skill_id=row.pk)
        for kind, value in (facets_of(record) if record is not None else ())
    )


def _record(env: WorkerEnv, row: SkillEntry, event: Event) -> None:
    record_event(
        env,
        row.key,
        event.action,
        actor=event.actor,
        reason=event.reason,
        row=row,
        version=event.version,
        by_publisher=event.by_publisher,
    )
