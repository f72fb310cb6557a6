"""Empty the tables after a test that commits, at the price of what it wrote.

Django empties every table after each such test, and then creates the content types and the permissions anew; over a
thousand tests that was minutes on either database. Here only tables that hold rows are emptied, and what migrations and
Django itself put into the database stays as long as it is still what it was.
"""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management.color import no_style
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

KEPT: Final = (ContentType, Permission)
_NAMES: Final = frozenset(model._meta.db_table for model in KEPT)

# Tables in which rows may be deleted. Only a superuser, as is the user of the tests' own server, switches triggers off.
_SMALL: Final = """
    SELECT relname FROM pg_class
    WHERE oid = ANY(%(tables)s::regclass[]) AND reltuples < 0
    AND pg_relation_size(oid) <= 10 * current_setting('block_size')::int AND current_setting('is_superuser') = 'on'
"""

_tables: Final[dict[str, list[str]]] = {}
_kept_rows: Final[dict[str, list[Any]]] = {}


def empty_what_was_written() -> None:
    """Replace the end of Django's TransactionTestCase, which pytest-django runs after each test that commits."""
    django = TransactionTestCase._fixture_teardown  # type: ignore[attr-defined]  # the stubs leave out what is private

    def teardown(case: TransactionTestCase) -> None:
        aliases = list(case._databases_names(include_mirrors=False))  # type: ignore[attr-defined]  # as above
        if case.available_apps is not None or not all(_is_as_it_was(alias) for alias in aliases):
            django(case)
            # Django gives them new numbers.
            _kept_rows.update((alias, _rows(alias)) for alias in aliases)
            for alias in aliases:
                # What no model has, Django leaves.
                _empty(connections[alias])
            return
        for alias in aliases:
            _empty(connections[alias])
        ContentType.objects.clear_cache()

    TransactionTestCase._fixture_teardown = teardown  # type: ignore[attr-defined]  # as above


def _is_as_it_was(alias: str) -> bool:
    return alias in _kept_rows and _kept_rows[alias] == _rows(alias)


_LOOKED_UP = {"marketplace_searchword", "marketplace_searchnameword", "marketplace_searchsample"}


def _rows(alias: str) -> list[Any]:
    return [list(model._base_manager.using(alias).order_by("pk").values_list()) for model in KEPT]


def _empty(connection: BaseDatabaseWrapper) -> None:
    if connection.alias not in _tables:
        names = connection.introspection.django_table_names(only_existing=True, include_views=False)
        # No model has what PostgreSQL looks words up in, and those of another test would hide that some are not kept.
        names += _LOOKED_UP & {*connection.introspection.table_names()}
        _tables[connection.alias] = [name for name in names if name not in _NAMES]
    # The names are those of our own models.
    one = "SELECT '{0}' WHERE EXISTS (SELECT 1 FROM {0})"
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(one.format(table) for table in _tables[connection.alias]))
        written = [name for (name,) in cursor.fetchall()]
    written = _delete_from_small_tables(connection, written)
    if written:
        # With the tables that refer to them: PostgreSQL truncates none without those.
        connection.ops.execute_sql_flush(connection.ops.sql_flush(no_style(), written, allow_cascade=True))
    _empty_the_index_of_the_search(connection)


def _delete_from_small_tables(connection: BaseDatabaseWrapper, written: list[str]) -> list[str]:
    """Delete the rows of small tables on PostgreSQL, and return the tables that are still to be emptied.

    To truncate a table takes 60 ms, as each index of it and of those that refer to it becomes a new file. Where rows
    were deleted, their pages stay; of a table of ten pages that was never analysed PostgreSQL thinks what it thinks of
    an empty one, so a test has the same plans as before.
    """
    if connection.vendor != "postgresql" or not written:
        return written
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.execute(_SMALL, {"tables": written})
        small = {name for (name,) in cursor.fetchall()}
        if small:
            deletes = "; ".join(f"DELETE FROM {name}" for name in sorted(small))  # noqa: S608 - names of our own models
            # Without triggers: what they would keep of these rows is emptied too, and references lead to nothing.
            cursor.execute(f"SET LOCAL session_replication_role = replica; {deletes}")
    return [name for name in written if name not in small]


def _empty_the_index_of_the_search(connection: BaseDatabaseWrapper) -> None:
    # No model has it, and what a test wrote into it alone would stay: its triggers follow the documents.
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM sqlite_master WHERE name = 'marketplace_searchfts_idx'")
        if cursor.fetchone() is None:
            return
        cursor.execute("SELECT 1 FROM marketplace_searchfts_idx LIMIT 1")
        if cursor.fetchone() is not None:
            cursor.execute("INSERT INTO marketplace_searchfts(marketplace_searchfts) VALUES ('delete-all')")
