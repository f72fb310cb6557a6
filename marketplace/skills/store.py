"""Write a skill: its entry, its search tokens and its facets in one transaction, or none of them.

Everything that changes a skill comes through here, so that no list, facet or search can disagree with the entry.
"""

from __future__ import annotations

from dataclasses import replace

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from marketplace.derived_models import SkillFacet
from marketplace.errors import SkillNotFound
from marketplace.models import ALIAS_PREFIX, SKILL_PREFIX, HistoryEvent, SkillEntry, SkillVersion
from marketplace.records import SkillRecord
from marketplace.skills.search import index_skill
from marketplace.skills.versions import highest
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now, isoformat
from vskill.kv.codec import encode
from vskill.kv.errors import VersionConflict
from vskill.kv.namespace import KVNamespace

MAX_TAGS = 20


def skill_namespace(env: WorkerEnv) -> KVNamespace:
    """Return the skills of an environment as a KV namespace."""
    return KVNamespace(SkillEntry, env)


def now_text(env: WorkerEnv) -> str:
    """Return the time by the database's clock, as values hold it."""
    return isoformat(database_now(env.database))


def locked_skill(env: WorkerEnv, slug: str) -> SkillEntry:
    """Return the row of a skill, locked until the transaction ends; raise ``SkillNotFound`` where there is none.

    SQLite has no row locks and needs none: its transactions write one after another.
    """
    rows = SkillEntry.objects.using(env.database).select_for_update()
    row: SkillEntry | None = rows.filter(namespace=env.name, key=f"{SKILL_PREFIX}{slug}").first()
    if row is None or row.is_alias:
        raise SkillNotFound(f"There is no skill {slug!r} in {env.name!r}.")
    return row


def create_skill(env: WorkerEnv, record: SkillRecord) -> SkillEntry:
    """Write a skill that is new; raise ``VersionConflict`` where its name is held already."""
    key = f"{SKILL_PREFIX}{record.slug}"
    skill_namespace(env).put_sync(key, record.to_value(), expect_version=0)
    row: SkillEntry = SkillEntry.objects.using(env.database).get(namespace=env.name, key=key)
    _write_around(env, row, record)
    return row


def update_skill(env: WorkerEnv, row: SkillEntry, record: SkillRecord) -> None:
    """Write what changed of a skill; raise ``VersionConflict`` where another writer was first."""
    skill_namespace(env).put_sync(row.key, record.to_value(), expect_version=row.version)
    _write_around(env, row, record)


def move_skill(
    env: WorkerEnv, row: SkillEntry, record: SkillRecord, slug: str, *, actor: str, reason: str
) -> SkillRecord:
    """Give a skill another slug in the same row, leave an alias behind, and return the new record.

    Raises ``VersionConflict`` where another writer was first or the name is held, ``IntegrityError`` where it was
    taken meanwhile.
    """
    namespace = skill_namespace(env)
    moved = replace(record, slug=slug, updated_at=now_text(env))
    new_key = f"{SKILL_PREFIX}{slug}"
    old_slug = row.key.removeprefix(SKILL_PREFIX)
    if slug != old_slug and namespace.get_sync(new_key).version:
        raise VersionConflict(f"{new_key!r} is held by another skill. Nothing was renamed.")
    value = moved.to_value()
    # The row itself moves, and not a copy of it, because versions, downloads and history point at it.
    rows = SkillEntry.objects.using(env.database).filter(pk=row.pk, version=row.version)
    columns = {"key": new_key, "value": encode(value), "updated_at": Now(), **SkillEntry.project(value)}
    with transaction.atomic(using=env.database):
        if not rows.write_row(version=F("version") + 1, **columns):
            raise VersionConflict(f"{row.key!r} was changed by another writer. Nothing was renamed: read it again.")
        if slug != old_slug:
            metadata = {"actor": actor, "reason": reason, "at": moved.updated_at}
            namespace.put_sync(f"{ALIAS_PREFIX}{old_slug}", slug, metadata=metadata)
            # A skill that takes back a former name of its own must not be its own alias.
            namespace.delete_sync(f"{ALIAS_PREFIX}{slug}")
        row.key = new_key
        _write_around(env, row, moved)
    return moved


def with_latest(record: SkillRecord, versions: list[SkillVersion]) -> SkillRecord:
    """Return the record as its highest version that is not withdrawn describes it."""
    offered = {version.version: version for version in versions if not version.withdrawn}
    number = highest(offered)
    if number is None:
        return replace(record, latest_version="")
    latest = offered[number]
    return replace(
        record,
        name=latest.name,
        display_name=display_name(latest),
        description=latest.description,
        license=latest.license,
        compatibility=latest.compatibility,
        tags=tags_of(latest),
        latest_version=latest.version,
        commit_sha=latest.commit_sha,
        content_hash=latest.content_hash,
        verdict=latest.verdict,
        verdict_summary=latest.verdict_summary,
        capabilities=tuple(latest.capabilities),
        submission_id=latest.submission_id,
    )


def display_name(version: SkillVersion) -> str:
    """Return the title of a version: what its metadata calls it, or its name."""
    title = next(
        (version.metadata[key] for key in ("display-name", "displayName", "title") if version.metadata.get(key)), ""
    )
    # Control and direction characters would let a title dress up as something else on a page.
    shown = "".join(character for character in str(title) if character.isprintable()).strip()
    return shown[:80] or version.name


def tags_of(version: SkillVersion) -> tuple[str, ...]:
    """Return the tags that a version's metadata declares, lower case, without repetition."""
    text = " ".join(str(version.metadata.get(key, "")) for key in ("tags", "keywords", "category"))
    tags = (tag.strip().lower()[:64] for tag in text.replace(",", " ").split())
    return tuple(dict.fromkeys(tag for tag in tags if tag.isprintable() and tag))[:MAX_TAGS]


def record_event(
    env: WorkerEnv,
    subject: str,
    action: str,
    *,
    actor: str,
    reason: str,
    row: SkillEntry | None = None,
    version: str = "",
) -> None:
    """Append one event to the history, in the transaction of the deed."""
    HistoryEvent.objects.using(env.database).create(
        namespace=env.name,
        subject=subject,
        skill_id=row.pk if row is not None else None,
        action=action,
        version=version,
        actor=actor,
        reason=reason.replace("\0", "\N{REPLACEMENT CHARACTER}"),
    )


def _write_around(env: WorkerEnv, row: SkillEntry, record: SkillRecord) -> None:
    index_skill(row, record, env.database)
    facets = SkillFacet.objects.using(env.database)
    facets.filter(skill_id=row.pk).delete()
    wanted = [(SkillFacet.TAG, tag) for tag in record.tags]
    wanted += [(SkillFacet.CAPABILITY, capability[:64]) for capability in dict.fromkeys(record.capabilities)]
    facets.bulk_create(
        SkillFacet(namespace=row.namespace, kind=kind, value=value, skill_id=row.pk) for kind, value in wanted
    )
