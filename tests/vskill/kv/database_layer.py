"""Reach into the database layer: stand around each statement, and make rows that cannot be read."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.probe import probe
from vskill.kv.threads import readers

Execute = Callable[[str, Any, bool, dict[str, Any]], Any]
Wrapper = Callable[[Execute, str, Any, bool, dict[str, Any]], Any]
TABLE = KVEntry._meta.db_table


@contextmanager
def around_each_statement(wrapper: Wrapper) -> Iterator[None]:
    """Stand ``wrapper`` around each statement of each reader thread while the body runs."""

    def wrap(connection: BaseDatabaseWrapper, **_kwargs: Any) -> None:
        if threading.current_thread().name.startswith("kv-read"):
            connection.execute_wrappers[:] = [wrapper]

    # Threads that are there already have connections that nobody wrapped.
    readers.close()
    connection_created.connect(wrap, weak=False)
    try:
        yield
    finally:
        connection_created.disconnect(wrap)
        readers.close()


@contextmanager
def selects_meet() -> Iterator[None]:
    """Let no select of entries end before another has begun; without a second one the first fails after a minute."""
    met = threading.Event()

    def meet(execute: Execute, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        # Counted before the statement is sent, so that whoever comes second sees both.
        if probe.selects_in_flight > 1:
            met.set()
        if probe.selects_in_flight and not met.wait(60):
            raise TimeoutError("no select was sent beside this one")
        return execute(sql, params, many, context)

    with around_each_statement(meet):
        yield


@contextmanager
def blocked_readers(count: int = 4) -> Iterator[None]:
    """Keep every reader thread busy while the body runs, so that no read begins."""
    released = threading.Event()
    entered = threading.Barrier(count + 1, timeout=30)

    def block() -> None:
        entered.wait()
        released.wait(60)

    blocking = [readers.submit_shared(block) for _ in range(count)]
    entered.wait()
    try:
        yield
    finally:
        released.set()
        for one in blocking:
            one.result()


def fill(namespace: KVNamespace, keys: Sequence[str]) -> None:
    """Write an entry for each key whose value is the key."""
    with transaction.atomic(using=namespace.alias):
        for key in keys:
            namespace.put_sync(key, key)


@contextmanager
def unreadable(keys: Sequence[str], column: str = "value") -> Iterator[None]:
    """Make ``column`` of the rows of ``keys`` something that the database fails to give out while the body runs."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            # A byte that no UTF-8 text has.
            among = "key IN (SELECT value FROM JSON_EACH(%(keys)s))"
            statement = f"UPDATE {TABLE} SET {column} = CAST(X'22ff22' AS TEXT) WHERE {among}"  # noqa: S608 - names of our own
            cursor.execute(statement, {"keys": json.dumps(keys)})
        yield
        return
    with _failing_view(keys, column):
        yield


@contextmanager
def _failing_view(keys: Sequence[str], column: str) -> Iterator[None]:
    """Put a view in the place of the table that fails, as a damaged page does, where one of these rows is read."""
    fields = [field.attname for field in KVEntry._meta.concrete_fields]
    failing_column = f"CASE WHEN key = ANY(kv_test_bad()) THEN kv_test_fail(key) ELSE {column} END AS {column}"
    shown = [failing_column if field == column else field for field in fields]
    # STABLE, so that a query that does not ask for the column does not fail.
    fail = "BEGIN RAISE EXCEPTION 'invalid page in block 7' USING ERRCODE = 'data_corrupted'; END"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"CREATE FUNCTION kv_test_fail(text) RETURNS text STABLE LANGUAGE plpgsql AS $$ {fail} $$")
        cursor.execute("CREATE TABLE kv_test_keys (keys text[])")
        cursor.execute("INSERT INTO kv_test_keys VALUES (%(keys)s)", {"keys": list(keys)})
        select = "SELECT keys FROM kv_test_keys"
        cursor.execute(f"CREATE FUNCTION kv_test_bad() RETURNS text[] STABLE LANGUAGE sql AS $$ {select} $$")
        cursor.execute(f"ALTER TABLE {TABLE} RENAME TO kv_test_rows")
        cursor.execute(f"CREATE VIEW {TABLE} AS SELECT {', '.join(shown)} FROM kv_test_rows")  # noqa: S608 - as above
    try:
        yield
    finally:
        # No thread may still hold a lock on the view.
        readers.close()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"DROP VIEW {TABLE}")
            cursor.execute(f"ALTER TABLE kv_test_rows RENAME TO {TABLE}")
            cursor.execute("DROP FUNCTION kv_test_fail(text), kv_test_bad()")
            cursor.execute("DROP TABLE kv_test_keys")
