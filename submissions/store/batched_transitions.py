"""Group commit of transitions: submissions that are ready at the same time share a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from django.db import DatabaseError

from submissions.states import check_transition
from submissions.store.records import Submission
from submissions.store.transitions import Step, transition, transition_many
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.coalescing import Group, group


async def move(env: WorkerEnv, wanted: Step) -> Submission:
    """Apply one transition as ``transition`` does, with the same errors, and return the submission.

    Cancelled while the database works on it, it may still have moved.
    """
    check_transition(wanted.submission.state, wanted.following)
    movers: Group[Step, Submission] = group(("move", env.database, env.name), partial(_move_all, env))
    return await movers.add(wanted)


def _move_all(env: WorkerEnv, moves: Sequence[Step]) -> list[Submission | Exception]:
    ids = {one.submission.id for one in moves}
    if len(ids) == len(moves):
        try:
            return transition_many(env, moves)
        except (DatabaseError, VskillError):
            # One of them could not be written, so none was. Written one by one, each gets its own result.
            pass
    return [_move_one(env, one) for one in moves]


def _move_one(env: WorkerEnv, one: Step) -> Submission | Exception:
    try:
        return transition(
            env,
            one.submission,
            one.following,
            reason=one.reason,
            actor=one.actor,
            trigger=one.trigger,
            changes=one.changes,
        )
    except Exception as error:  # noqa: BLE001 - it is raised where this one's result is awaited
        return error
