"""Write submissions: each transition is one compare-and-set and one history row, in one transaction."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction

from submissions.models import SUBMISSION_PREFIX, SubmissionEntry, SubmissionTransition
from submissions.outbox import TOLD, Ended, tell_ended
from submissions.states import State, check_transition
from submissions.store.records import Submission
from vskill.environments import WorkerEnv
from vskill.kv.batch import Change, update_many
from vskill.kv.clock import database_now, isoformat
from vskill.kv.codec import storable
from vskill.kv.errors import VersionConflict
from vskill.kv.namespace import KVNamespace
from vskill.kv.rows import NewRows, insert_rows

_HISTORY: Final = ("namespace", "submission_id", "sequence", "from_state", "to_state", "reason", "actor", "trigger")
_HistoryRow = tuple[str, int, str, str, str, str, str]
"""Submission id, version written, old state, new state, reason, actor, trigger."""


@dataclass(frozen=True)
class Step:
    """A transition of a submission as it was read.

    ``following`` is the new state. ``reason``, ``actor`` and ``trigger`` (the part of the system that moved it) go into
    the history, ``changes`` into the value.
    """

    submission: Submission
    following: State
    reason: str
    actor: str
    trigger: str
    changes: Mapping[str, Any] | None = None


def submission_namespace(env: WorkerEnv) -> KVNamespace:
    """Return the submissions of ``env``."""
    return KVNamespace(SubmissionEntry, env)


def submission_key(submission_id: str) -> str:
    """Return the key of a submission."""
    return f"{SUBMISSION_PREFIX}{submission_id}"


def new_submission_id() -> str:
    """Return a new id: ``sub_`` and the hex of a random UUID."""
    return f"sub_{uuid.uuid4().hex}"


def _value_after(
    submission: Submission, following: State, reason: str, changes: Mapping[str, Any] | None, now: str
) -> dict[str, Any]:
    # A reason may quote what a stranger wrote.
    return {
        **submission.value,
        **(changes or {}),
        "state": following,
        "reason": storable(reason),
        "updatedAt": now,
    }


def _history(env: WorkerEnv, rows: Iterable[_HistoryRow]) -> NewRows:
    return NewRows(SubmissionTransition, _HISTORY, [(env.name, *row) for row in rows])


def _record(env: WorkerEnv, row: _HistoryRow) -> None:
    insert_rows(env.database, _history(env, [row]))


def create_submission(env: WorkerEnv, fields: Mapping[str, Any], *, actor: str, trigger: str) -> Submission:
    """Write a new submission in RECEIVED with its first history row, in one transaction, and return it.

    ``fields`` are the parts of the value that the caller knows; ``actor`` and ``trigger`` go into the history. Raises
    ``IntegrityError`` where the same skill has a live submission.
    """
    submission_id = new_submission_id()
    with transaction.atomic(using=env.database):
        now = isoformat(database_now(env.database))
        value = {**fields, "id": submission_id, "state": State.RECEIVED, "createdAt": now, "updatedAt": now}
        version = submission_namespace(env).put_sync(submission_key(submission_id), value, expect_version=0)
        _record(env, (submission_id, version, "", State.RECEIVED, "", actor, trigger))
    return Submission(submission_id, version, value)


def transition(
    env: WorkerEnv,
    submission: Submission,
    following: State,
    *,
    reason: str,
    actor: str,
    trigger: str,
    changes: Mapping[str, Any] | None = None,
    by_operator: bool = False,
) -> Submission:
    """Move a submission as it was read to the state ``following``, and return it with its new version.

    One compare-and-set, one history row and what people are told of it, in one transaction. ``reason``, ``actor`` and
    ``trigger`` (the part of the system that moves it) go into the history, ``changes`` into the value. ``by_operator``
    also allows the transitions that only a person may choose. Raises ``IllegalTransition`` for a transition that the
    table of states does not have, and ``VersionConflict`` where somebody else has moved it since; nothing is written
    then.
    """
    check_transition(submission.state, following, by_operator=by_operator)
    with transaction.atomic(using=env.database):
        now = isoformat(database_now(env.database))
        value = _value_after(submission, following, reason, changes, now)
        version = submission_namespace(env).put_sync(
            submission_key(submission.id), value, expect_version=submission.version
        )
        _record(env, (submission.id, version, submission.state, following, value["reason"], actor, trigger))
        tell_ended(env, [Ended(submission.id, version, value)])
    return Submission(submission.id, version, value)


def transition_many(env: WorkerEnv, steps: Sequence[Step]) -> list[Submission | Exception]:
    """Apply one checked transition each to different submissions in one statement, and return each result.

    The result for a submission that somebody else has moved is a ``VersionConflict``; the others move. An error of the
    database is raised, and none moves.
    """
    now = isoformat(database_now(env.database))
    moved, changes, rows = [], [], []
    for step in steps:
        before = step.submission
        value = _value_after(before, step.following, step.reason, step.changes, now)
        one = Submission(before.id, before.version + 1, value)
        moved.append(one)
        changes.append(Change(submission_key(one.id), value, before.version, before.value))
        rows.append((one.id, one.version, before.state, step.following, value["reason"], step.actor, step.trigger))
    written = _write_many(env, moved, changes, _history(env, rows))
    return [
        one
        if done
        else VersionConflict(f"{one.id} was moved by somebody else meanwhile. Nothing was written: read it again.")
        for one, done in zip(moved, written, strict=True)
    ]


def _write_many(env: WorkerEnv, moved: Sequence[Submission], changes: Sequence[Change], history: NewRows) -> list[bool]:
    def write() -> list[bool]:
        return update_many(SubmissionEntry, env.database, env.name, changes, beside=history)

    if not any(one.state in TOLD for one in moved):
        # One statement, where the database can: most steps are told to nobody.
        return write()
    with transaction.atomic(using=env.database):
        written = write()
        done = [one for one, is_written in zip(moved, written, strict=True) if is_written]
        tell_ended(env, [Ended(one.id, one.version, one.value) for one in done])
    return written


def touch(env: WorkerEnv, submission: Submission, changes: Mapping[str, Any]) -> Submission:
    """Write ``changes`` into a submission that stays in its state, without history; return it with its new version.

    Raises ``VersionConflict`` where somebody else has moved it.
    """
    now = isoformat(database_now(env.database))
    value = {**submission.value, **changes, "updatedAt": now}
    version = submission_namespace(env).put_sync(
        submission_key(submission.id), value, expect_version=submission.version
    )
    return Submission(submission.id, version, value)


def repeat(env: WorkerEnv, submission: Submission, *, reason: str, actor: str, trigger: str) -> Submission:
    """Restart the present state of a submission, with a history row that says why, and return it.

    ``reason``, ``actor`` and ``trigger`` go into that row. Raises ``VersionConflict`` where somebody else has moved it.
    """
    reason = storable(reason)
    with transaction.atomic(using=env.database):
        again = touch(env, submission, {})
        _record(env, (submission.id, again.version, submission.state, submission.state, reason, actor, trigger))
    return again
