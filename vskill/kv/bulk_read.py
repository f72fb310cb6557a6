"""Read a chunk of entries from SQLite as one row.

The sqlite3 module needs the interpreter for each row that it fetches, and waits for it while other threads decode. Here
SQLite assembles the whole chunk outside the interpreter: a JSON array that describes the entries, and one text of their
values. Row by row, a scan of 50,000 entries on two cores took 1.4 times as long.

A chunk whose values cannot be told apart is read again row by row. PostgreSQL is always read row by row: its driver
fetches all rows of a result at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from vskill.kv.codec import decode
from vskill.kv.outcomes import Row
from vskill.kv.statements import Statements

# Fewer keys are read faster row by row.
MIN_CHUNK: Final = 50

Ask = Callable[[str, Mapping[str, Any]], list[Any]]
"""Run a statement with its named parameters and return the rows."""


def read_bulk(ask: Ask, statements: Statements, namespace: str, keys: Sequence[str]) -> list[Row] | None:
    """Return the rows of those ``keys`` that exist, or ``None`` where they have to be read row by row.

    ``ask`` runs a select of ``statements``, those of the table, on the database; what it raises is passed on. Rows of
    ``namespace`` alone are read.
    """
    if statements.vendor != "sqlite" or len(keys) < MIN_CHUNK:
        return None
    parameters = {"namespace": namespace, "keys": statements.keys(keys)}
    [(described, values)] = ask(statements.read_keys_as_one_row, parameters)
    return _split(described, values or "")


def _split(described: str, values: str) -> list[Row] | None:
    """Return the rows of entries whose values are joined in one text, or ``None`` where that text is ambiguous."""
    try:
        entries = decode(described)
    except ValueError:
        # SQLite writes some numbers of a damaged row in a form that is not JSON.
        return None
    rows: list[Row] = []
    end = 0
    for key, version, length, metadata, expired, is_text in entries:
        if not is_text:
            return None
        start, end = end, end + length
        rows.append((key, values[start:end], version, metadata, expired))
    # SQLite counts a text only up to a NUL, and two values that are not UTF-8 may have fewer characters together than
    # separately.
    return rows if end == len(values) and "\0" not in values else None
