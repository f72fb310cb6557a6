"""Write many entries in one statement, each by its own compare-and-set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.db import connections, models, transaction

from vskill.kv.codec import check_key, encode
from vskill.kv.models import AbstractKVEntry
from vskill.kv.rows import NewRows, column_types, insert_rows, same_as_first, with_rows
from vskill.kv.statements import Statements, statements
from vskill.kv.writer import projection

_UNKNOWN: Final = object()


@dataclass(frozen=True)
class Change:
    """A new value for the entry ``key``, which has to be at ``expect_version``.

    ``before`` is the decoded value at that version, for a caller that has it. Projected columns that both values have
    in common are then not written, which spares the indexes over them.
    """

    key: str
    value: Any
    expect_version: int
    before: Any = _UNKNOWN


def update_many(
    model: type[AbstractKVEntry],
    alias: str,
    namespace: str,
    changes: Sequence[Change],
    beside: NewRows | None = None,
) -> list[bool]:
    """Write those of ``changes`` whose entry is at the expected version, and return for each whether it was written.

    ``model``, ``alias`` and ``namespace`` are those of ``writer.put``. The entries written have no metadata and no
    expiry afterwards. ``beside`` holds one row for each change, which is inserted only if the change is written. All of
    it is one transaction on the connection of the calling thread: a database error, such as an ``IntegrityError`` for
    one of them, undoes all. Raises ``InvalidKey`` or ``InvalidValue`` before anything is written.
    """
    if not changes:
        return []
    sql = statements(model, connections[alias].vendor)
    written = []
    for change in changes:
        text = encode(change.value)
        written.append((check_key(change.key), change.expect_version, text, projection(model, text)))
    columns = _changed_columns(model, changes, [projected for *_, projected in written])
    keys, versions, values, projections = zip(*written, strict=True)
    by_column = [_prepared(sql, alias, column, [one[column] for one in projections]) for column in columns]
    rows = list(zip(keys, versions, values, *by_column, strict=True))
    update = _Update(sql, alias, namespace, columns)
    if beside is None:
        updated = update.run(rows)
    elif sql.vendor == "postgresql":
        updated = update.run_with(rows, beside)
    else:
        with transaction.atomic(using=alias):
            updated = update.run(rows)
            found = [row for key, row in zip(keys, beside.rows, strict=True) if key in updated]
            if found:
                insert_rows(alias, replace(beside, rows=found))
    return [change.key in updated for change in changes]


@dataclass(frozen=True)
class _Update:
    """The statement that writes values and projected ``columns``; a row is key, version, value and those columns."""

    sql: Statements
    alias: str
    namespace: str
    columns: tuple[str, ...]

    @property
    def _types(self) -> tuple[str, ...]:
        return column_types(self.sql.model, ("key", "version", "value", *self.columns), self.alias)

    @property
    def _statement(self) -> str:
        now = self.sql.now
        changed = ['"value" = v.column3', "\"metadata\" = '{}'", '"expires_at" = NULL', f'"updated_at" = {now}']
        changed += [f'"{column}" = v.column{position}' for position, column in enumerate(self.columns, start=4)]
        same_key = same_as_first(self.sql.vendor, '"key"')
        return (
            f'UPDATE "{self.sql.model._meta.db_table}" SET {", ".join(changed)}, "version" = "version" + 1 '  # noqa: S608 - names of our own models, no input
            f'FROM v WHERE "namespace" = %(namespace)s AND {same_key} AND "version" = v.column2 '
            f'AND {self.sql.live} RETURNING "key"'
        )

    def run(self, rows: Sequence[Sequence[Any]]) -> set[str]:
        """Write ``rows`` and return the keys of the entries that were written."""
        return self._execute(self._types, rows, f" {self._statement}")

    def run_with(self, rows: Sequence[Sequence[Any]], beside: NewRows) -> set[str]:
        """Write ``rows`` and insert the rows beside the written ones, in one statement; for PostgreSQL only.

        A transaction of two statements would take three more round trips.
        """
        own = self._types
        types = [*own, *beside.types(self.alias)]
        new = ", ".join(f"v.column{position}" for position in range(len(own) + 1, len(types) + 1))
        joined = [(*row, *other) for row, other in zip(rows, beside.rows, strict=True)]
        return self._execute(
            types,
            joined,
            f", updated AS ({self._statement}), inserted AS ("  # noqa: S608 - as above
            f'{beside.insert} SELECT {new} FROM v JOIN updated ON updated."key" = v.column1) SELECT "key" FROM updated',
        )

    def _execute(self, types: Sequence[str], rows: Sequence[Sequence[Any]], statement: str) -> set[str]:
        given, parameters = with_rows(self.sql.vendor, types, rows)
        with connections[self.alias].cursor() as cursor:
            cursor.execute(f"{given}{statement}", {**parameters, "namespace": self.namespace})
            return {key for (key,) in cursor.fetchall()}


def _prepared(sql: Statements, alias: str, column: str, values: Sequence[Any]) -> Sequence[Any]:
    """Return the values of one column as the driver takes them."""
    field = sql.model._meta.get_field(column)
    if isinstance(field, models.CharField):
        # Every driver takes a text as it is, and asking the field for each would take longer than all the rest.
        return values
    if isinstance(field, models.DateTimeField):
        # Entries written together often have the same time.
        prepared = {value: sql.column(column, value, alias) for value in set(values)}
        return [prepared[value] for value in values]
    return [sql.column(column, value, alias) for value in values]


def _changed_columns(
    model: type[AbstractKVEntry], changes: Sequence[Change], projections: Sequence[Mapping[str, Any]]
) -> tuple[str, ...]:
    """Return the projected columns that at least one of ``changes`` changes: the statement writes them for all."""
    left = list(model.projected_columns)
    changed: set[str] = set()
    for change, after in zip(changes, projections, strict=True):
        if change.before is _UNKNOWN:
            return model.projected_columns
        before = model.project(change.before)
        changed.update(column for column in left if before.get(column, _UNKNOWN) != after[column])
        left = [column for column in left if column not in changed]
    return tuple(column for column in model.projected_columns if column in changed)
