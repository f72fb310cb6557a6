"""Insert rows of any table in bulk, each given as its columns, for data that is invented by the thousand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django.db import models

from marketplace.models import SkillEntry
from submissions.models import SUBMISSION_PREFIX, SubmissionEntry
from vskill.environments import WorkerEnv
from vskill.kv.codec import encode
from vskill.kv.rows import NewRows, insert_rows

_ROWS_OF_A_STATEMENT: Final = 20_000


def entry(env: WorkerEnv, key: str, value: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a submission or a skill with a ``value``, its projection, and the columns of its ``own``."""
    model = SubmissionEntry if key.startswith(SUBMISSION_PREFIX) else SkillEntry
    columns = {"namespace": env.name, "key": key, "value": encode(value), "metadata": "{}", "version": 1}
    return {**columns, **model.project(value), **own}


def insert(env: WorkerEnv, model: type[models.Model], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, each with the same columns; a moment is written as both databases take it from a text."""
    columns = tuple(rows[0]) if rows else ()
    for start in range(0, len(rows), _ROWS_OF_A_STATEMENT):
        part = rows[start : start + _ROWS_OF_A_STATEMENT]
        plain = [[_stored(value) if type(value) is datetime else value for value in row.values()] for row in part]
        insert_rows(env.database, NewRows(model, columns, plain))


def _stored(moment: datetime) -> str:
    # Of UTC, with a fraction even where it is nothing, as Django writes it.
    return moment.replace(tzinfo=None).isoformat(" ", "microseconds")
