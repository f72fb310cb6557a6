"""A database that is away, or goes away in the middle, is one failure a chunk, and every key is accounted for."""

from __future__ import annotations

import asyncio
import logging
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import OperationalError, connection, connections
from pytest_django import DjangoDbBlocker

from tests.services.postgres import PostgresUnavailable, find_binaries, postgres_server
from tests.vskill.absent_database import absent_database, dead_server, unreadable_file
from tests.vskill.kv.database_layer import fill
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Outcome, Status
from vskill.kv.probe import probe
from vskill.kv.threads import readers

pytestmark = pytest.mark.database

KEYS = [f"key-{number:05}" for number in range(2000)]


@pytest.fixture(autouse=True)
def _any_database(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    # Not the mark django_db, which forbids every database but the one that it empties.
    with django_db_blocker.unblock():
        yield
        readers.close()


def namespace_in(alias: str) -> KVNamespace:
    return KVNamespace(KVEntry, WorkerEnv(name="default", database=alias))


def create_table(alias: str) -> None:
    with connections[alias].schema_editor() as editor:
        editor.create_model(KVEntry)


def settings_of(url: str) -> dict[str, Any]:
    parts = urllib.parse.urlsplit(url)
    address = {"HOST": parts.hostname, "PORT": str(parts.port), "USER": parts.username, "PASSWORD": parts.password}
    return {"ENGINE": "vskill.postgresql", "NAME": parts.path.lstrip("/"), **address}


async def gathered(namespace: KVNamespace) -> list[Outcome]:
    return await asyncio.gather(*(namespace.get(key) for key in KEYS))


async def many(namespace: KVNamespace) -> list[Outcome]:
    return [outcome async for outcome in namespace.get_many(KEYS)]


def statuses(outcomes: list[Outcome]) -> Counter[Status]:
    return Counter(outcome.status for outcome in outcomes)


@pytest.mark.parametrize("read", [gathered, many])
@pytest.mark.parametrize("kind", ["unreadable file", "dead server"])
def test_a_database_that_is_away_is_one_failure_a_chunk(
    kind: str, read: Callable[[KVNamespace], Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = unreadable_file(tmp_path) if kind == "unreadable file" else dead_server()
    probe.reset()
    with absent_database(settings) as alias, caplog.at_level(logging.ERROR, "vskill.kv"):
        outcomes = async_to_sync(read)(namespace_in(alias))
    assert statuses(outcomes) == {Status.UNREADABLE: 2000}
    assert probe.selects == 4
    assert len(caplog.records) == 4
    reason = "unable to open database file" if kind == "unreadable file" else "connection"
    assert all(reason in outcome.detail for outcome in outcomes)
    assert all(len(outcome.detail) <= 200 for outcome in outcomes)


def test_a_table_that_is_missing_is_one_failure_a_chunk_and_no_search_for_rows(tmp_path: Path) -> None:
    probe.reset()
    with absent_database({"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "empty.sqlite3")}) as alias:
        outcomes = async_to_sync(many)(namespace_in(alias))
    assert statuses(outcomes) == {Status.UNREADABLE: 2000}
    assert "no such table" in outcomes[0].detail
    # One select shows that it is not a row: it asks for none and fails as well.
    assert probe.selects == 4 * 2


def test_a_file_that_goes_away_in_the_middle_loses_what_comes_after_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "vskill.sqlite3"
    with absent_database({"ENGINE": "django.db.backends.sqlite3", "NAME": str(path)}) as alias:
        create_table(alias)
        namespace = namespace_in(alias)
        fill(namespace, KEYS)
        connections[alias].close()

        async def read() -> list[Outcome]:
            outcomes = []
            async for outcome in namespace.get_many(KEYS, window=500):
                outcomes.append(outcome)
                if len(outcomes) == 1:
                    # A connection that is open reads on in a file that was moved away.
                    await asyncio.to_thread(readers.close)
                    path.rename(tmp_path / "elsewhere")
                    path.mkdir()
            return outcomes

        outcomes = async_to_sync(read)()
    assert [outcome.status for outcome in outcomes] == [Status.VALUE] * 500 + [Status.UNREADABLE] * 1500
    assert [outcome.key for outcome in outcomes] == KEYS


def test_a_listing_of_a_database_that_is_away_fails_and_is_never_an_empty_page(tmp_path: Path) -> None:
    with absent_database(unreadable_file(tmp_path)) as alias:
        namespace = namespace_in(alias)
        with pytest.raises(OperationalError):
            async_to_sync(namespace.list)("sub:")
        with pytest.raises(OperationalError):
            async_to_sync(namespace.put)("key", 1)
        with pytest.raises(OperationalError):
            async_to_sync(namespace.purge_expired)()


@pytest.fixture
def _server_installed() -> None:
    try:
        find_binaries()
    except PostgresUnavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.slow
@pytest.mark.usefixtures("_server_installed")
@pytest.mark.parametrize("pool", [None, {"min_size": 0, "max_size": 16, "timeout": 2}], ids=["no pool", "pool"])
def test_a_server_that_stops_in_the_middle_loses_what_comes_after_and_says_so(pool: dict[str, int] | None) -> None:
    with ExitStack() as server:
        settings = settings_of(server.enter_context(postgres_server()))
        with absent_database({**settings, "OPTIONS": {"pool": pool} if pool else {}}) as alias:
            create_table(alias)
            namespace = namespace_in(alias)
            fill(namespace, KEYS)

            async def read() -> list[Outcome]:
                outcomes = []
                async for outcome in namespace.get_many(KEYS, window=500):
                    outcomes.append(outcome)
                    if len(outcomes) == 1:
                        await sync_to_async(server.close)()
                return outcomes

            outcomes = async_to_sync(read)()
            readers.close()
            connections[alias].close()
            connections[alias].close_pool()  # type: ignore[attr-defined]  # PostgreSQL's wrapper has it
    assert [outcome.status for outcome in outcomes] == [Status.VALUE] * 500 + [Status.UNREADABLE] * 1500


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no connections that a server could end")
def test_connections_that_the_server_ends_are_made_anew_and_nothing_is_lost(env: WorkerEnv) -> None:
    namespace = KVNamespace(KVEntry, env)
    fill(namespace, KEYS)

    pool = connection.pool  # type: ignore[attr-defined]  # PostgreSQL's wrapper has it

    def leave_some_idle() -> None:
        for taken in [pool.getconn() for _ in range(4)]:
            pool.putconn(taken)

    def end_all_that_idle() -> None:
        # One that is being made is spared: the pool waits a second before it tries that again.
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'idle'"
            )

    async def read() -> list[Outcome]:
        outcomes = []
        async for outcome in namespace.get_many(KEYS, window=500):
            outcomes.append(outcome)
            if len(outcomes) % 500 == 1:
                await sync_to_async(leave_some_idle)()
                await sync_to_async(end_all_that_idle)()
        return outcomes

    try:
        assert statuses(async_to_sync(read)()) == {Status.VALUE: 2000}
    finally:
        # The tests after this one get a pool that has no connections to replace.
        readers.close()
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]  # as above
