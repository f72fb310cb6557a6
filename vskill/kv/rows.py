"""Rows as a table that a statement reads from: the text of the statement is the same for any number of rows.

They reach the database as one parameter, a JSON array. With a parameter for each value, the driver of PostgreSQL takes
longer to search the statement for placeholders than the server takes to run it, and SQLite looks up each name in the
list of all of them: 200 rows of an update took 1.5 times as long.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final

import msgspec
from django.db import connections, models

from vskill.kv.errors import InvalidValue

_quick: Final = msgspec.json.Encoder()


def with_rows(vendor: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[str, dict[str, str]]:
    """Return the WITH clause of a table ``v`` that holds ``rows``, and its named parameter ``v_rows``.

    The columns of ``v`` are called column1, column2 and so on. ``types`` are their PostgreSQL types, one for each
    value of a row; SQLite uses their number alone. A value is a text, a number, a boolean or ``None``, as the driver
    takes it (``Statements.column``); PostgreSQL takes a datetime as well.

    On SQLite this raises ``InvalidValue`` for a text with a NUL and ``UnicodeEncodeError`` for one with half of a
    surrogate pair; on PostgreSQL the server refuses both as ``DataError``.
    """
    if vendor == "postgresql":
        names = [f"column{position}" for position in range(1, len(types) + 1)]
        described = ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=True))
        text = _as_json([dict(zip(names, row, strict=True)) for row in rows])
        select = f"SELECT * FROM JSON_TO_RECORDSET(%(v_rows)s::json) AS r({described})"  # noqa: S608 - names and types of our own
    else:
        columns = [f"JSON_EXTRACT(value, '$[{position}]') AS column{position + 1}" for position in range(len(types))]
        text = _quick.encode(rows).decode()
        if r"\u0000" in text and any("\0" in value for row in rows for value in row if isinstance(value, str)):
            # SQLite would cut the text off there without a word.
            raise InvalidValue("A row has a text with the NUL character, which cannot be written.")
        select = f"SELECT {', '.join(columns)} FROM JSON_EACH(%(v_rows)s)"  # noqa: S608 - names of our own
    return f"WITH v AS MATERIALIZED ({select})", {"v_rows": text}


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
