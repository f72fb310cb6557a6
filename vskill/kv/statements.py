"""The SQL of the KV layer, in the words of both databases.

Written by hand and not by the ORM for two reasons: compiling a query of 500 keys costs more than running it, and
"insert, or replace what has expired, and say the version" is one statement here, where it would be a loop of three.
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

# Django's own Now() of each vendor: the time of the statement, which moves on inside a transaction.
_NOW = {"sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')", "postgresql": "STATEMENT_TIMESTAMP()"}
_NOW_PLUS = {
    "sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW', %(ttl)s)",
    "postgresql": "STATEMENT_TIMESTAMP() + %(ttl)s",
}
# One parameter for all keys, so that the text of the statement is the same for any number of them.
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
    def read_range(self) -> str:
        """Select what ``read_keys`` does of all that lies between two keys, both included; parameters: ``namespace``,
        ``first``, ``last``, ``limit``."""
        return f'{self._read} AND "key" >= %(first)s AND "key" <= %(last)s LIMIT %(limit)s'

    @cached_property
    def read_keys_together(self) -> str:
        """Select one row (SQLite): JSON with key, version, length of the value, metadata, whether it has expired and
        whether it is a text, for each entry; and their values in that order, one after another.

        Parameters as ``read_keys``.
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
        """Select ``columns`` of entries in the order of their keys: of the ``live`` ones, or of all.

        Parameters: namespace, the key to start with (``after`` it, or at it), the end where there is one, the limit.
        """
        start = '"key" > %s' if after else '"key" >= %s'
        until = ' AND "key" < %s' if end else ""
        alive = f" AND {self.live}" if live else ""
        return (
            f'SELECT {columns} FROM {self._table} WHERE "namespace" = %s AND {start}{until}{alive} '  # noqa: S608 - as above
            'ORDER BY "key" LIMIT %s'
        )

    def update(self, changed: Mapping[str, str]) -> str:
        """Write ``changed`` (columns and their SQL) into a live entry that is at a version.

        Parameters: those of ``changed``, ``namespace``, ``key``, ``expect_version``.
        """
        columns = ", ".join(f'"{column}" = {sql}' for column, sql in changed.items())
        return (
            f'UPDATE {self._table} SET {columns}, "version" = "version" + 1 '  # noqa: S608 - as above
            f'WHERE "namespace" = %(namespace)s AND "key" = %(key)s AND "version" = %(expect_version)s '
            f"AND {self.live}"
        )

    def upsert(self, inserted: Mapping[str, str], changed: Sequence[str], *, only_expired: bool) -> str:
        """Insert ``inserted`` (columns and their SQL), or write ``changed`` of it over what is there.

        Returns the version, or no row where ``only_expired`` and what is there has not expired. A row keeps counting
        when it is replaced, so that nobody who holds its old version can match the new entry.
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
        """Return the SQL of the present time."""
        return _NOW[self.vendor]

    def expiry_after(self, ttl: timedelta) -> tuple[str, Any]:
        """Return the SQL of the time that ``ttl`` from now will be, and the value of its parameter ``ttl``."""
        return _NOW_PLUS[self.vendor], f"{ttl.total_seconds():+f} seconds" if self.vendor == "sqlite" else ttl

    def column(self, name: str, value: Any, alias: str) -> Any:
        """Return ``value`` as the driver of the database takes it for the column ``name``."""
        field: models.Field[Any, Any] = self.model._meta.get_field(name)  # type: ignore[assignment]  # columns, no relations
        return field.get_db_prep_save(value, connection=connections[alias])

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Return the columns that stand by themselves (a counter, say) with the value that a new row has in them."""
        known = {"namespace", "key", "version", "created_at", *WRITTEN, *self.model.projected_columns}
        fields = self.model._meta.concrete_fields
        return {
            field.attname: field.get_default()
            for field in fields
            if not field.primary_key and field.attname not in known
        }


@cache
def statements(model: type[AbstractKVEntry], vendor: str) -> Statements:
    """Return the statements of a table."""
    return Statements(model, vendor)
