"""Look up rows by many keys, and read of many rows only the columns that are wanted.

The keys go to the database as one parameter: a parameter for each takes longer to write.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import TypeVar

from django.db import connections
from django.db.models import Model, QuerySet
from django.db.models.expressions import RawSQL

M = TypeVar("M", bound=Model)


def rows_of(rows: QuerySet[M], column: str, keys: Sequence[int] | Sequence[str]) -> QuerySet[M]:
    """Return the ``rows`` whose ``column`` is one of ``keys``, which are all numbers or all texts."""
    if not keys:
        return rows.none()
    if connections[rows.db].vendor == "sqlite":
        return rows.filter(**{f"{column}__in": RawSQL("SELECT value FROM json_each(%s)", (json.dumps(keys),))})
    kind = "text" if isinstance(keys[0], str) else "bigint"
    return rows.filter(**{f"{column}__in": RawSQL(f"SELECT unnest(%s::{kind}[])", (list(keys),))})  # noqa: S611 - our own names


def with_columns(rows: QuerySet[M], columns: Collection[str]) -> QuerySet[M]:
    """Return ``rows`` of which these columns are read, by default all; another is read when it is asked for."""
    return rows.only(*columns) if columns else rows
