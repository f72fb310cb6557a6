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


def _plain(value: object) -> int:
    # Django wraps numbers for PostgreSQL into subclasses of int that say their type.
    if isinstance(value, int):
        return int(value)
    raise NotImplementedError(f"A row cannot hold a {type(value).__name__}.")


_quick: Final = msgspec.json.Encoder(enc_hook=_plain)


def with_rows(vendor: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[str, dict[str, str]]:
    """Return the WITH clause of a table ``v`` that holds ``rows``, and its named parameter ``v_rows``.

    The columns of ``v`` are called column1, column2 and so on. ``types`` are their PostgreSQL types, one for each
    value of a row; SQLite uses their number alone. A value is a text, a number, a boolean or ``None``, as the driver
    takes it (``Statements.column``); PostgreSQL takes a datetime as well.

    On SQLite this raises ``InvalidValue`` for a text with a NUL and ``UnicodeEncodeError`` for one with a lone
    surrogate; on PostgreSQL the server refuses both as ``DataError``.
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
            # SQLite would silently cut the text off there.
            raise InvalidValue("A row has a text with the NUL character, which cannot be written.")
        select = f"SELECT {', '.join(columns)} FROM JSON_EACH(%(v_rows)s)"  # noqa: S608 - names of our own
    return f"WITH v AS MATERIALIZED ({select})", {"v_rows": text}


def _as_json(rows: Sequence[Mapping[str, Any]]) -> str:
    try:
        return _quick.encode(rows).decode()
    except UnicodeEncodeError:
        # A lone surrogate: the server refuses it as a DataError.
        return json.dumps(rows, default=datetime.isoformat)


def same_as_first(vendor: str, column: str) -> str:
    """Return the condition that ``column`` equals the first column of ``v``."""
    return _found_by_first(vendor, column, f"{column} = v.column1")


def among_rows(vendor: str, first: str, second: str) -> str:
    """Return the condition that the pair of columns occurs in ``v`` as its first two columns."""
    return _found_by_first(vendor, first, f"({first}, {second}) IN (SELECT column1, column2 FROM v)")  # noqa: S608 - columns of ours


def _found_by_first(vendor: str, column: str, condition: str) -> str:
    # PostgreSQL overestimates the length of v and would join it by reading a table of some thousand rows whole. The
    # second condition makes it use the index.
    if vendor == "postgresql":
        return f"{condition} AND {column} = ANY(ARRAY(SELECT column1 FROM v))"  # noqa: S608 - a column of ours
    return condition


@cache
def column_types(model: type[models.Model], names: tuple[str, ...], alias: str) -> tuple[str, ...]:
    """Return the database types of columns of ``model``, as ``with_rows`` takes them."""
    connection = connections[alias]
    return tuple(str(model._meta.get_field(name).db_type(connection)) for name in names)


@dataclass(frozen=True)
class NewRows:
    """Rows to insert into the table of ``model``; each has a text or a number for each of ``columns``."""

    model: type[models.Model]
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]

    def types(self, alias: str) -> tuple[str, ...]:
        """Return the database types of the columns."""
        return column_types(self.model, self.columns, alias)

    @property
    def insert(self) -> str:
        """Return the ``INSERT INTO`` clause; the caller appends the ``SELECT`` of the rows."""
        return f'INSERT INTO "{self.model._meta.db_table}" ({", ".join(self.columns)})'


def insert_rows(alias: str, new: NewRows) -> None:
    """Insert rows by one statement, without the ORM, which takes ten times as long.

    That matters because it is done for every step of every submission. Raises what ``with_rows`` does, and
    ``IntegrityError``.
    """
    connection = connections[alias]
    given, parameters = with_rows(connection.vendor, new.types(alias), new.rows)
    with connection.cursor() as cursor:
        cursor.execute(f"{given} {new.insert} SELECT * FROM v", parameters)  # noqa: S608 - names of our own models
