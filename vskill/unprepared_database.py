"""Say in one line that a database has no tables, or lacks a migration, and what to do about it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from django.conf import settings
from django.core.management.base import CommandError
from django.db import Error as AnyDatabaseError
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from vskill.environments import databases_in_use
from vskill.errors import VskillError

# https://www.postgresql.org/docs/current/errcodes-appendix.html: undefined_table and undefined_column.
_SQLSTATES: Final = frozenset({"42P01", "42703"})
# SQLite has one code for all of these.
_SQLITE_SAYS: Final = re.compile(r"no such (?:table|column): |has no column named ")


class DatabaseNotPrepared(VskillError):
    """A database has no tables, or lacks a migration."""

    code = "database_not_prepared"


def place_of(alias: str) -> str:
    """Return where a configured database is, without its password."""
    options = settings.DATABASES[alias]
    if "sqlite3" in str(options["ENGINE"]):
        return str(options["NAME"])
    port = f":{options['PORT']}" if options.get("PORT") else ""
    return f"{options['USER']}@{options['HOST']}{port}/{options['NAME']}"


def require_prepared(aliases: Iterable[str]) -> None:
    """Raise ``DatabaseNotPrepared`` for the first of these databases that lacks a migration of this release.

    A database that does not answer passes: it may be away for a moment, and whatever starts now waits for it.
    """
    for alias in aliases:
        connection = connections[alias]
        held = connection.connection is not None
        try:
            executor = MigrationExecutor(connection)
            plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        except AnyDatabaseError:
            continue
        finally:
            if not held:
                connection.close()
        if plan:
            first = plan[0][0]
            more = f" and {len(plan) - 1} more" if len(plan) > 1 else ""
            nothing = not executor.loader.applied_migrations
            lacks = "has no tables" if nothing else f"lacks the migration {first.app_label}.{first.name}{more}"
            option = "" if alias == "default" else f" --database {alias}"
            raise DatabaseNotPrepared(
                f"The database {place_of(alias)} {lacks}. Run: manage.py migrate{option}. If the server works, its "
                f"VSKILL_DATA_DIR (here {settings.DATA_DIR}) or DATABASE_URL is another one."
            )


def exit_unprepared() -> None:
    """End the process that is about to serve requests, with one line, where a database in use is not prepared."""
    # A web server imports the application inside its event loop, where Django refuses to touch a database.
    with ThreadPoolExecutor(1) as thread:
        try:
            thread.submit(require_prepared, databases_in_use()).result()
        except DatabaseNotPrepared as error:
            sys.exit(f"Nothing was started. {error}")


@contextmanager
def unprepared_databases_named() -> Iterator[None]:
    """Raise ``CommandError`` with advice in place of an error of the body that a missing table or column caused."""
    try:
        yield
    except Exception as error:
        name_unprepared_database(error)
        raise


def name_unprepared_database(error: BaseException) -> None:
    """Raise ``CommandError`` with advice where a missing table or column caused ``error``; return otherwise."""
    if not any(_is_about_a_missing_table(one) for one in _chain(error)):
        return
    try:
        require_prepared(databases_in_use())
    except DatabaseNotPrepared as advice:
        raise CommandError(str(advice)) from error


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_about_a_missing_table(error: BaseException) -> bool:
    return getattr(error, "sqlstate", None) in _SQLSTATES or _SQLITE_SAYS.search(str(error)) is not None
