"""Connections to PostgreSQL that end, busy or idle, are made anew: nothing that could be read is lost for it."""

from __future__ import annotations

import asyncio
import select
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any, Final

import psycopg
import psycopg.sql
import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import connection
from django.test import override_settings
from psycopg_pool import ConnectionPool

from tests.vskill.kv.database_layer import fill
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Outcome, Status
from vskill.kv.threads import readers

SIZE: Final = 8
KEYS: Final = [f"key-{number:03}" for number in range(100)]
NAME: Final = "vskill of the pool tests"

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.postgres,
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no connections that a server could end"),
]


@pytest.fixture(autouse=True)
def _pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the pool up as the shipped one is, but small, and with as many reader threads as it has connections."""
    options = connection.settings_dict["OPTIONS"]
    close_pool()
    monkeypatch.setitem(options, "application_name", NAME)
    monkeypatch.setitem(options, "pool", {**options["pool"], "max_size": SIZE})
    with override_settings(KV_READ_WORKERS=SIZE):
        yield
        close_pool()


def close_pool() -> None:
    """Forget the pool: the next one follows the settings of then."""
    readers.close()
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL's wrapper has it


def the_pool() -> ConnectionPool[psycopg.Connection[Any]]:
    pool: ConnectionPool[psycopg.Connection[Any]] = connection.pool  # type: ignore[attr-defined]  # as above
    return pool


@contextmanager
def all_taken() -> Iterator[set[int]]:
    """Take every connection that the pool may have, all at once; yield the processes that serve them."""
    taken = [connection.copy() for _ in range(SIZE)]
    try:
        processes = set()
        for one in taken:
            with one.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                processes.add(cursor.fetchone()[0])
        yield processes
    finally:
        for one in taken:
            one.close()


@contextmanager
def operator(database: str = "postgres") -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection to the server that belongs to no pool."""
    here = connection.settings_dict
    address = {name.lower(): here[name] for name in ("HOST", "PORT", "USER", "PASSWORD")}
    with closing(psycopg.connect(**address, dbname=database, autocommit=True)) as connected:
        yield connected


def end_connections(*, wait: bool = False) -> int:
    """End every connection of the pool, busy or idle, and return how many there were; ``wait`` until they are gone."""
    statement = "SELECT pg_terminate_backend(pid, %(wait)s) FROM pg_stat_activity WHERE application_name = %(name)s"
    with operator() as connected:
        return len(connected.execute(statement, {"wait": 60_000 if wait else 0, "name": NAME}).fetchall())


@contextmanager
def unreachable() -> Iterator[None]:
    """Let the server refuse new connections to the database of the tests, and end those that there are."""
    name = psycopg.sql.Identifier(str(connection.settings_dict["NAME"]))
    change = psycopg.sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    with operator() as connected:
        connected.execute(change.format(name, psycopg.sql.SQL("false")))
        try:
            end_connections()
            yield
        finally:
            connected.execute(change.format(name, psycopg.sql.SQL("true")))


@pytest.fixture
def entries(env: WorkerEnv) -> KVNamespace:
    namespace = KVNamespace(KVEntry, env)
    fill(namespace, KEYS)
    connection.close()
    return namespace


async def together(entries: KVNamespace) -> list[Outcome]:
    """Read as many keys as there are threads, each with a select of its own."""

    async def read(key: str) -> Outcome:
        (outcome,) = [outcome async for outcome in entries.get_many([key])]
        return outcome

    return await asyncio.gather(*map(read, KEYS[:SIZE]))


def test_no_statement_starts_processes_or_a_compiler_for_itself() -> None:
    for _ in range(2):
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('max_parallel_workers_per_gather'), current_setting('jit')")
            assert cursor.fetchone() == ("0", "off")
        connection.close()


def test_connections_that_were_ended_while_they_lay_idle_are_noticed_before_they_are_used(entries: KVNamespace) -> None:
    with all_taken():
        pass
    assert end_connections(wait=True) == SIZE
    for _ in range(SIZE):
        # Not only the reads of the KV layer: a page, a write and a command take theirs from the same pool.
        assert KVEntry.objects.count() == len(KEYS)
        connection.close()
    assert end_connections(wait=True) >= 1
    assert entries.put_sync("key", 1) == 1


def test_a_connection_that_has_something_to_say_is_not_taken_for_a_broken_one() -> None:
    with connection.cursor() as cursor:
        cursor.execute("LISTEN news")
    listening: psycopg.Connection[Any] = connection.connection
    connection.close()
    with operator(str(connection.settings_dict["NAME"])) as connected:
        connected.execute("NOTIFY news")
    assert select.select([listening], [], [], 60)[0]
    connection.ensure_connection()
    assert connection.connection is listening


def test_a_read_whose_connection_is_ended_again_and_again_is_read_all_the_same(entries: KVNamespace) -> None:
    statements = 0

    def end_first(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal statements
        statements += 1
        if statements <= 3:
            end_connections(wait=True)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(end_first):
        assert entries.get_sync("key-001").value == "key-001"
    assert statements == 4


def test_connections_ended_thirty_times_cost_no_read_and_leave_a_whole_pool(entries: KVNamespace) -> None:
    rounds = threading.Semaphore(0)
    statuses: Counter[Status] = Counter()

    async def read_until(ended: asyncio.Future[None]) -> None:
        while not ended.done():
            statuses.update(outcome.status for outcome in await together(entries))
            statuses.update([outcome.status async for outcome in entries.get_many(KEYS, window=SIZE)])
            rounds.release()

    def end_thirty_times() -> None:
        for _ in range(30):
            # Reading goes on meanwhile, so that some of them are busy and the others idle.
            assert rounds.acquire(timeout=60)
            end_connections()

    async def both() -> None:
        ended = asyncio.ensure_future(asyncio.to_thread(end_thirty_times))
        await asyncio.gather(read_until(ended), ended)

    async_to_sync(both)()
    assert set(statuses) == {Status.VALUE}
    readers.close()
    with all_taken() as processes:
        assert len(processes) == SIZE


def test_a_read_is_told_that_there_is_no_connection_before_its_own_time_is_up() -> None:
    # Two waits, because a read may have to wait for a thread that waits for a connection itself.
    assert 2 * the_pool().timeout <= settings.KV_READ_TIMEOUT


@pytest.mark.slow
def test_a_database_that_comes_back_is_read_at_once_however_long_it_was_away(
    entries: KVNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who waits twice as long after each attempt is between 7 and 15 s when it comes back, and nobody waits for more
    # than 3 s here.
    monkeypatch.setitem(connection.settings_dict["OPTIONS"]["pool"], "timeout", 3)
    close_pool()
    with all_taken():
        pass
    with unreachable():
        for _ in range(3):
            assert entries.get_sync("key-001").status == Status.UNREADABLE
    assert entries.get_sync("key-001").value == "key-001"
    connection.close()
    with all_taken() as processes:
        assert len(processes) == SIZE


def test_those_who_wait_for_a_database_are_served_when_it_comes_back(
    entries: KVNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = connection.settings_dict["OPTIONS"]["pool"]
    shipped = options["reconnect_failed"]
    given_up = threading.Semaphore(0)

    def count(pool: ConnectionPool[Any]) -> None:
        shipped(pool)
        given_up.release()

    async def read() -> list[Outcome]:
        reads = asyncio.ensure_future(together(entries))
        for _ in range(3):
            assert await asyncio.to_thread(given_up.acquire, timeout=60)
        await asyncio.to_thread(back.close)
        return await reads

    monkeypatch.setitem(options, "reconnect_failed", count)
    # Nobody gives up before it is back, however slow the machine.
    monkeypatch.setitem(options, "timeout", 60)
    close_pool()
    with override_settings(KV_READ_TIMEOUT=120.0), ExitStack() as back:
        back.enter_context(unreachable())
        assert [outcome.value for outcome in async_to_sync(read)()] == KEYS[:SIZE]
