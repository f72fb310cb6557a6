"""Look up rows by many keys, which go to the database as one parameter: a parameter for each takes longer to write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeVar

from django.db import connections
from django.db.models import Model, QuerySet
from django.db.models.expressions import RawSQL

M = TypeVar("M", bound=Model)


def rows_of(rows: QuerySet[M], column: str, keys: Sequence[int]) -> QuerySet[M]:
    """Return the ``rows`` whose ``column``, a number, is one of ``keys``."""
    if connections[rows.db].vendor == "sqlite":
        return rows.filter(**{f"{column}__in": RawSQL("SELECT value FROM json_each(%s)", (json.dumps(keys),))})
    return rows.filter(**{f"{column}__in": RawSQL("SELECT unnest(%s::bigint[])", (list(keys),))})
