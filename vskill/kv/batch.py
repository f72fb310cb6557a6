"""Write many entries by one statement, each a compare-and-set of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connections, models

from vskill.kv.codec import check_key, encode
from vskill.kv.models import AbstractKVEntry
from vskill.kv.statements import Statements, statements
from vskill.kv.writer import projection


@dataclass(frozen=True)
class Change:
    """A value that takes the place of the one at ``expect_version``, which has to be there."""

    key: str
    value: Any
    expect_version: int


def update_many(model: type[AbstractKVEntry], alias: str, namespace: str, changes: Sequence[Change]) -> list[bool]:
    """Write each change whose entry is at the version it expects, and say of each whether it was written.

    The entries are without metadata and expiry afterwards. All of it is one statement on the connection of the calling
    thread: an error of the database (a constraint that one of them breaks, say) lets none of them happen.
    """
    if not changes:
        return []
    connection = connections[alias]
    wording = statements(model, connection.vendor)
    parameters: list[Any] = []
    columns = model.projected_columns
    texts = [isinstance(model._meta.get_field(column), models.CharField) for column in columns]
    for change in changes:
        text = encode(change.value)
        projected = projection(model, text)
        parameters += [check_key(change.key), change.expect_version, text]
        parameters += [
            # Every driver takes a text as it is; to be told so by the field costs more than the rest of this loop.
            projected[column] if is_text else wording.column(column, projected[column], alias)
            for column, is_text in zip(columns, texts, strict=True)
        ]
    with connection.cursor() as cursor:
        cursor.execute(_statement(wording, columns, len(changes), alias), [*parameters, namespace])
        written = {key for (key,) in cursor.fetchall()}
    return [change.key in written for change in changes]


def _statement(wording: Statements, columns: Sequence[str], count: int, alias: str) -> str:
    """Return the statement for ``count`` changes.

    Both vendors call the columns of VALUES column1, column2 and so on.
    """
    row = f"({', '.join(['%s'] * (3 + len(columns)))})"
    changed = ['"value" = v.column3', "\"metadata\" = '{}'", '"expires_at" = NULL', f'"updated_at" = {wording.now}']
    changed += [
        f'"{column}" = {_cast(wording, column, f"v.column{position}", alias)}'
        for position, column in enumerate(columns, start=4)
    ]
    table = f'"{wording.model._meta.db_table}"'
    return (
        f'UPDATE {table} SET {", ".join(changed)}, "version" = "version" + 1 '  # noqa: S608 - names of our own models, no input
        f"FROM (VALUES {', '.join([row] * count)}) AS v "
        f'WHERE "namespace" = %s AND "key" = v.column1 AND "version" = v.column2 '
        f'AND ("expires_at" IS NULL OR "expires_at" > {wording.now}) RETURNING "key"'
    )


def _cast(wording: Statements, column: str, sql: str, alias: str) -> str:
    # PostgreSQL takes a column of VALUES that holds nothing but NULL for text. SQLite has no types to confuse.
    if wording.vendor != "postgresql":
        return sql
    kind = wording.model._meta.get_field(column).db_type(connections[alias])
    return f"CAST({sql} AS {kind})"
