"""The SQL of the KV layer, for both databases.

It is written by hand and not by the ORM for two reasons. Compiling an ORM query of 500 keys takes longer than running
it. And "insert, or replace an expired entry, and return the version" is one statement here, but a loop of three there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, cached_property
from typing import Any

from django.db import connections, models

from vskill.kv.models import AbstractKVEntry

# As Django's Now() writes it: the time of the statement, which advances inside a transaction.
_NOW = {"sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')", "postgresql": "STATEMENT_TIMESTAMP()"}
_NOW_PLUS = {
    "sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW', %(ttl)s)",
    "postgresql": "STATEMENT_TIMESTAMP() + %(ttl)s",
}
# One parameter for all keys, so that the text of the statement does not depend on their number.
_KEY_AMONG = {
    "sqlite": '"key" IN (SELECT value FROM json_each(%(keys)s))',
    "postgresql": '"key" = ANY(ARRAY(SELECT json_array_elements_text(%(keys)s::json)))',
}
WRITTEN = ("value", "metadata", "expires_at", "updated_at")


@dataclass(frozen=True)
class Statements:
    """The statements of one table on one database vendor; each takes a mapping of named parameters."""

    model: type[AbstractKVEntry]
    vendor: str

    @property
    def _table(self) -> str:
        return f'"{self.model._meta.db_table}"'

    @cached_property
    def _expired(self) -> str:
        return f'"expires_at" IS NOT NULL AND "expires_at" <= {_NOW[self.vendor]}'

    @cached_property
    def live(self) -> str:
        """Return the condition that an entry has not expired."""
        return f'("expires_at" IS NULL OR "expires_at" > {_NOW[self.vendor]})'

    @cached_property
    def _read(self) -> str:
        columns = f'"key", "value", "version", "metadata", ({self._expired})'
        return f'SELECT {columns} FROM {self._table} WHERE "namespace" = %(namespace)s'  # noqa: S608 - names of our own models, no input

    @cached_property
    def read_keys(self) -> str:
        """Select key, value, version, metadata and whether it has expired; parameters: ``namespace``, ``keys``."""
        return f"{self._read} AND {_KEY_AMONG[self.vendor]}"

    @cached_property
    def read_keys_as_one_row(self) -> str:
        """Select one row that describes all entries (SQLite only); parameters: those of ``read_keys``.

        Its first column is a JSON array with key, version, length of the value, metadata, whether it has expired, and
        whether the value is a text, for each entry. Its second column is the concatenation of their values, in the same
        order.
        """
        described = f'"key", "version", LENGTH("value"), "metadata", ({self._expired}), TYPEOF("value") = \'text\''
        columns = f"JSON_GROUP_ARRAY(JSON_ARRAY({described})), GROUP_CONCAT(\"value\", '')"
        return (
            f'SELECT {columns} FROM {self._table} WHERE "namespace" = %(namespace)s '  # noqa: S608 - as above
            f"AND {_KEY_AMONG[self.vendor]}"
        )

    def keys(self, keys: Sequence[str]) -> str:
        """Return the value of the parameter ``keys``."""
        return json.dumps(keys, ensure_ascii=False)

    def page(self, columns: str, *, after: bool, end: bool, live: bool = True) -> str:
        """Select ``columns`` of entries in the order of their keys; only of those that have not expired if ``live``.

        Parameters: ``namespace``; ``start``, the key to start at, or to start after if ``after``; ``end``, the key to
        end before, if ``end``; and ``limit``.
        """
        start = '"key" > %(start)s' if after else '"key" >= %(start)s'
        until = ' AND "key" < %(end)s' if end else ""
        alive = f" AND {self.live}" if live else ""
        return (
            f'SELECT {columns} FROM {self._table} WHERE "namespace" = %(namespace)s '  # noqa: S608 - as above
            f'AND {start}{until}{alive} ORDER BY "key" LIMIT %(limit)s'
        )

    def update(self, changed: Mapping[str, str]) -> str:
        """Write ``changed``, SQL expressions by column, into the entry if it is at a version and has not expired.

        Parameters: those of ``changed``, ``namespace``, ``key``, ``expect_version``.
        """
        columns = ", ".join(f'"{column}" = {sql}' for column, sql in changed.items())
        return (
            f'UPDATE {self._table} SET {columns}, "version" = "version" + 1 '  # noqa: S608 - as above
            f'WHERE "namespace" = %(namespace)s AND "key" = %(key)s AND "version" = %(expect_version)s '
            f"AND {self.live}"
        )

    def upsert(self, inserted: Mapping[str, str], changed: Sequence[str], *, only_expired: bool) -> str:
        """Insert ``inserted``, SQL expressions by column, or write its columns ``changed`` over an existing entry.

        Returns the version. With ``only_expired``, an entry that has not expired is left as it is, and no row is
        returned. The version of an entry that is replaced rises and does not start again, so a writer that holds the
        old version cannot match the new entry. Parameters: those of ``inserted``.
        """
        names, table = ", ".join(f'"{column}"' for column in inserted), self._table
        expired = f'{table}."expires_at" IS NOT NULL AND {table}."expires_at" <= {_NOW[self.vendor]}'
        replaced = [f'"{column}" = excluded."{column}"' for column in changed]
        replaced.append(f'"version" = {table}."version" + 1')
        replaced.append(f'"created_at" = CASE WHEN {expired} THEN excluded."created_at" ELSE {table}."created_at" END')
        return (
            f"INSERT INTO {table} ({names}) VALUES ({', '.join(inserted.values())}) "  # noqa: S608 - as above
            f'ON CONFLICT ("namespace", "key") DO UPDATE SET {", ".join(replaced)}'
            f'{f" WHERE {expired}" if only_expired else ""} RETURNING "version"'
        )

    @property
    def now(self) -> str:
        """Return the SQL of the current time."""
        return _NOW[self.vendor]

    def expiry_after(self, ttl: timedelta) -> tuple[str, dict[str, Any]]:
        """Return the SQL of the current time plus ``ttl``, and its named parameter."""
        return _NOW_PLUS[self.vendor], {"ttl": f"{ttl.total_seconds():+f} seconds" if self.vendor == "sqlite" else ttl}

    def column(self, name: str, value: Any, alias: str) -> Any:
        """Return ``value`` as the driver of the database ``alias`` takes it for the column ``name``."""
        field: models.Field[Any, Any] = self.model._meta.get_field(name)  # type: ignore[assignment]  # columns, no relations
        return field.get_db_prep_save(value, connection=connections[alias])

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Return the default values of the independent columns, which no write of an entry sets (a counter, say)."""
        known = {"namespace", "key", "version", "created_at", *WRITTEN, *self.model.projected_columns}
        fields = self.model._meta.concrete_fields
        return {
            field.attname: field.get_default()
            for field in fields
            if not field.primary_key and field.attname not in known
        }


@cache
def statements(model: type[AbstractKVEntry], vendor: str) -> Statements:
    """Return the statements of the table of ``model`` on a database of ``vendor``, "sqlite" or "postgresql"."""
    return Statements(model, vendor)
