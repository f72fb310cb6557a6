"""Submissions and messages as tests need them: of any state and age, and damaged ones."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import connections, transaction

from marketplace.skills.publishers import publisher_identity
from submissions.messages import VERIFY
from submissions.models import QueueMessage, SubmissionEntry
from submissions.states import State
from submissions.store.queries import read_submission
from submissions.store.records import Submission
from submissions.store.transitions import new_submission_id, submission_key
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now, isoformat
from vskill.kv.codec import encode

_REPOSITORY = "https://git.example.org/someone/skills"


def make_submissions(
    env: WorkerEnv,
    count: int,
    state: State = State.RECEIVED,
    *,
    age: timedelta = timedelta(),
    message: bool = False,
    **fields: Any,
) -> list[str]:
    """Write ``count`` submissions that last moved ``age`` ago, with their messages where that is asked for, and return
    their ids."""
    publisher = publisher_identity(fields.get("repoUrl", _REPOSITORY))
    moved_at = isoformat(database_now(env.database) - age)
    values = [
        {
            "id": submission_id,
            "state": state,
            "createdAt": moved_at,
            "updatedAt": moved_at,
            "repoUrl": _REPOSITORY,
            "skillName": "hello-skill",
            "skillPath": "skills/hello",
            "identity": submission_id,
            **fields,
        }
        for submission_id in (new_submission_id() for _ in range(count))
    ]
    with transaction.atomic(using=env.database):
        SubmissionEntry.objects.using(env.database).bulk_create(
            [
                SubmissionEntry(
                    namespace=env.name,
                    key=submission_key(value["id"]),
                    value=encode(value),
                    **SubmissionEntry.project(value),
                )
                for value in values
            ]
        )
        if message:
            QueueMessage.objects.using(env.database).bulk_create(
                [
                    QueueMessage(environment=env.name, kind=VERIFY, subject=value["id"], publisher=publisher, turn=turn)
                    for turn, value in enumerate(values, 1)
                ]
            )
    return [value["id"] for value in values]


def make_submission(env: WorkerEnv, state: State = State.RECEIVED, **how: Any) -> Submission:
    """Write one submission as ``make_submissions`` does and return it."""
    [submission_id] = make_submissions(env, 1, state, **how)
    return read_submission(env, submission_id)


def damage(env: WorkerEnv, submission_id: str, value: str = '{"cut off') -> None:
    """Write ``value`` over the stored text of a submission, past the layer that would refuse it."""
    with connections[env.database].cursor() as cursor:
        cursor.execute(
            f"UPDATE {SubmissionEntry._meta.db_table} SET value = %s WHERE namespace = %s AND key = %s",  # noqa: S608 - our own table's name
            [value, env.name, submission_key(submission_id)],
        )


def messages_of(env: WorkerEnv, subject: str) -> list[QueueMessage]:
    """Return the messages about one subject, parked ones too, oldest first."""
    rows = QueueMessage.objects.using(env.database).filter(environment=env.name, subject=subject)
    return list(rows.order_by("id"))
