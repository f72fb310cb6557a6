"""Entries whose value cannot be read, or whose projected columns disagree with their value."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import DatabaseError

from marketplace.models import SkillEntry
from submissions.models import SUBMISSION_PREFIX, SubmissionEntry
from submissions.states import State
from submissions.store.holds import hold, is_decided
from submissions.store.queries import read_submission
from submissions.store.records import is_submission
from submissions.store.transitions import repeat, transition
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat
from vskill.kv.models import AbstractKVEntry, KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Outcome, Status
from vskill.kv.threads import readers

ACTOR: Final = "verify_store"
CHUNK: Final = 500
TABLES: Final[tuple[type[AbstractKVEntry], ...]] = (SubmissionEntry, SkillEntry, KVEntry)
# Keys of entries that are made again when they are missing: deleting one repairs it.
FORGETTABLE: Final = ("scan:", "repo-health:", "external-scan:", "external-scans:", "heartbeat:", "lock:")
_NO_VALUE: Final = (Status.MALFORMED, Status.UNREADABLE, Status.TIMED_OUT)
# Columns of a submission, and their names in its value.
_SALVAGED: Final = {
    "state": "state",
    "identity": "identity",
    "repo_url": "repoUrl",
    "skill_path": "skillPath",
    "skill_name": "skillName",
    "content_hash": "contentHash",
    "verdict": "verdict",
    "audience": "audience",
}


@dataclass(frozen=True)
class Damage:
    """A damaged entry; ``status`` is ``None`` where the value is good and the columns disagree with it.

    ``detail`` says what is wrong, ``version`` is the one that a repair must name.
    """

    model: type[AbstractKVEntry]
    key: str
    status: Status | None
    detail: str
    version: int


@dataclass
class ReadCounter:
    """How many entries were read."""

    read: int = 0


async def damaged_entries(env: WorkerEnv, model: type[AbstractKVEntry], counter: ReadCounter) -> AsyncIterator[Damage]:
    """Yield every damaged entry of one table of an environment, in bounded memory; ``counter`` counts the reads."""
    chunk: list[str] = []
    async for key in KVNamespace(model, env).list_all():
        chunk.append(key)
        if len(chunk) == CHUNK:
            counter.read += len(chunk)
            for damage in await _damaged(env, model, chunk):
                yield damage
            chunk = []
    counter.read += len(chunk)
    for damage in await _damaged(env, model, chunk):
        yield damage


async def _damaged(env: WorkerEnv, model: type[AbstractKVEntry], keys: Sequence[str]) -> list[Damage]:
    columns = await readers.run(_readable_columns, env, model, keys)
    outcomes = [outcome async for outcome in KVNamespace(model, env).get_many(keys)]
    return [
        damage for outcome in outcomes if (damage := _damage(model, outcome, columns.get(outcome.key, {}))) is not None
    ]


def _readable_columns(env: WorkerEnv, model: type[AbstractKVEntry], keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the columns of those of ``keys`` whose rows can be read: one bad row costs no more than itself."""
    try:
        return _columns(env, model, keys)
    except DatabaseError:
        if len(keys) < 2:
            return {}
    middle = len(keys) // 2
    return _readable_columns(env, model, keys[:middle]) | _readable_columns(env, model, keys[middle:])


def _columns(env: WorkerEnv, model: type[AbstractKVEntry], keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    rows = model._default_manager.using(env.database).filter(namespace=env.name, key__in=keys)
    return {row["key"]: row for row in rows.values("key", "version", *model.projected_columns)}


def _damage(model: type[AbstractKVEntry], outcome: Outcome, row: dict[str, Any]) -> Damage | None:
    version = row.get("version", 0)
    if outcome.status in _NO_VALUE:
        return Damage(model, outcome.key, outcome.status, outcome.detail, version)
    if not outcome.found or outcome.version != version:
        # Deleted or written between the two reads; whatever wrote it projected its columns.
        return None
    if model is SubmissionEntry and not is_submission(outcome.value):
        return Damage(model, outcome.key, Status.MALFORMED, "the value is no submission", version)
    projected = model.project(outcome.value)
    differing = sorted(name for name in model.projected_columns if projected[name] != row[name])
    return Damage(model, outcome.key, None, ", ".join(differing), version) if differing else None


def rewrite(env: WorkerEnv, damage: Damage) -> str:
    """Write the value of an entry again, which projects its columns; returns why not, empty where it was done."""
    namespace = KVNamespace(damage.model, env)
    outcome = namespace.get_sync(damage.key)
    value = outcome.require()
    row = damage.model._default_manager.using(env.database).defer("value").get(namespace=env.name, key=damage.key)
    namespace.put_sync(
        damage.key,
        value,
        metadata=outcome.metadata,
        expires_at=row.expires_at,
        expect_version=damage.version,
    )
    return ""


def salvage(env: WorkerEnv, damage: Damage) -> str:
    """Repair an entry whose value is lost; returns why that is not possible, empty where it was done.

    A submission is rebuilt from its columns, and checked again if it was in work. An entry that only saves work is
    deleted.
    """
    if damage.status is Status.TIMED_OUT:
        return "the database did not answer in time"
    if damage.model is KVEntry and damage.key.startswith(FORGETTABLE):
        KVNamespace(KVEntry, env).delete_sync(damage.key, expect_version=damage.version)
        return ""
    if damage.model is SubmissionEntry and damage.key.startswith(SUBMISSION_PREFIX):
        return _salvage_submission(env, damage)
    return "nothing else says what it held; restore it from a backup, or delete it"


def _salvage_submission(env: WorkerEnv, damage: Damage) -> str:
    rows = SubmissionEntry.objects.using(env.database).defer("value")
    row = rows.get(namespace=env.name, key=damage.key)
    if row.state not in State.__members__ or not row.identity or not row.repo_url:
        return "its columns do not say what it was; restore it from a backup, or delete it"
    submission_id = row.submission_id
    value = {name: getattr(row, column) for column, name in _SALVAGED.items()}
    times = {"createdAt": row.submitted_at, "updatedAt": row.state_at}
    value |= {name: isoformat(moment) for name, moment in times.items() if moment is not None}
    KVNamespace(SubmissionEntry, env).put_sync(
        damage.key, {**value, "id": submission_id}, expect_version=damage.version
    )
    submission = read_submission(env, submission_id)
    if submission.state in (State.TIER1_SCANNING, State.TIER2_SCANNING):
        transition(
            env,
            submission,
            State.RECEIVED,
            reason="its entry was damaged; it is checked again",
            actor=ACTOR,
            trigger=ACTOR,
        )
    elif is_decided(submission):
        reason = "its entry was damaged; what approved it is lost"
        hold(env, submission, reason=reason, actor=ACTOR, trigger=ACTOR)
    elif submission.state is State.RECEIVED:
        repeat(env, submission, reason="its entry was damaged and was written anew", actor=ACTOR, trigger=ACTOR)
    return ""
