"""Rows as a table that a statement reads from: how many there are does not show in what it costs to send them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final

import msgspec
from django.db import connections, models

_quick: Final = msgspec.json.Encoder()


def with_rows(vendor: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[str, list[Any]]:
    """Return the WITH of a table ``v`` that has ``rows``, with columns column1, column2 and so on, and its parameters.

    ``types`` are the types of the columns in the words of PostgreSQL, which SQLite does without. PostgreSQL gets one
    parameter: its driver takes longer to look through a statement of many places than the server does to run it.
    """
    names = [f"column{position}" for position in range(1, len(types) + 1)]
    if vendor == "postgresql":
        described = ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=True))
        text = _as_json([dict(zip(names, row, strict=True)) for row in rows])
        select = f"SELECT * FROM JSON_TO_RECORDSET(%s::json) AS r({described})"  # noqa: S608 - names and types of our own
        return f"WITH v AS MATERIALIZED ({select})", [text]
    row = f"({', '.join(['%s'] * len(types))})"
    places = ", ".join([row] * len(rows))
    return f"WITH v({', '.join(names)}) AS (VALUES {places})", [part for row in rows for part in row]


def _as_json(rows: Sequence[Mapping[str, Any]]) -> str:
    try:
        return _quick.encode(rows).decode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, which the server refuses in its own words.
        return json.dumps(rows, default=datetime.isoformat)


def same_as_first(vendor: str, column: str) -> str:
    """Return the condition that ``column`` is the first one of a row of ``v``."""
    return _found_by_first(vendor, column, f"{column} = v.column1")


def among_rows(vendor: str, first: str, second: str) -> str:
    """Return the condition that two columns are the first two of a row of ``v``."""
    return _found_by_first(vendor, first, f"({first}, {second}) IN (SELECT column1, column2 FROM v)")  # noqa: S608 - columns of ours


def _found_by_first(vendor: str, column: str, condition: str) -> str:
    # PostgreSQL is told twice: it takes v for long, and would read a table of some thousand rows whole to join it.
    if vendor == "postgresql":
        return f"{condition} AND {column} = ANY(ARRAY(SELECT column1 FROM v))"  # noqa: S608 - a column of ours
    return condition


@cache
def column_types(model: type[models.Model], names: tuple[str, ...], alias: str) -> tuple[str, ...]:
    """Return the types of columns of ``model`` as ``with_rows`` wants them."""
    connection = connections[alias]
    return tuple(str(model._meta.get_field(name).db_type(connection)) for name in names)


@dataclass(frozen=True)
class NewRows:
    """Rows for the table of ``model``; each has a text or a number for each of ``columns``."""

    model: type[models.Model]
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]

    def types(self, alias: str) -> tuple[str, ...]:
        """Return the types of the columns."""
        return column_types(self.model, self.columns, alias)

    @property
    def insert(self) -> str:
        """Return the beginning of the statement that inserts them; what they are selected from follows."""
        return f'INSERT INTO "{self.model._meta.db_table}" ({", ".join(self.columns)})'


def insert_rows(alias: str, new: NewRows) -> None:
    """Insert rows by hand: where it is done for every step of every submission, the ORM takes ten times as long."""
    connection = connections[alias]
    given, parameters = with_rows(connection.vendor, new.types(alias), new.rows)
    with connection.cursor() as cursor:
        cursor.execute(f"{given} {new.insert} SELECT * FROM v", parameters)  # noqa: S608 - names of our own models
