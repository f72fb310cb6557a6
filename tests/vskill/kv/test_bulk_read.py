"""Chunks that are read as one row have the same outcomes as keys that are read one by one."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from tests.vskill.kv.database_layer import TABLE, fill, unreadable
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Outcome, Status
from vskill.kv.probe import probe
from vskill.kv.threads import readers, writers

pytestmark = pytest.mark.django_db(transaction=True)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
on_sqlite = pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL refuses such a row")


@pytest.fixture
def namespace(env: WorkerEnv) -> KVNamespace:
    return KVNamespace(KVEntry, env)


@pytest.fixture(autouse=True)
def _counters_start_anew() -> None:
    probe.reset()


def keys_of(count: int) -> list[str]:
    return [f"key-{number:05}" for number in range(count)]


def overwrite(key: str, column: str, sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f'UPDATE {TABLE} SET "{column}" = {sql} WHERE "key" = %(key)s', {"key": key})  # noqa: S608 - our own words
        assert cursor.rowcount == 1


async def many(namespace: KVNamespace, keys: list[str]) -> list[Outcome]:
    return [outcome async for outcome in namespace.get_many(keys)]


async def read_alike(namespace: KVNamespace, keys: list[str]) -> list[Outcome]:
    """Return what a stream reads, having seen that key by key it is the same."""
    read = await many(namespace, keys)
    assert read == [await writers.run(namespace.get_sync, key) for key in keys]
    return read


async def test_a_chunk_of_everything_is_what_single_reads_are(namespace: KVNamespace) -> None:
    keys = keys_of(120)
    values: list[Any] = ["", "ä\U0001f600", "\0", {"a": [1.5, None]}, [], 10**30, "x" * 5000, " ", "\ud800"]

    def write() -> None:
        for number, key in enumerate(keys):
            namespace.put_sync(key, values[number % len(values)], metadata={"n": number} if number % 2 else None)
        namespace.put_sync(keys[7], "old", expires_at=LONG_AGO)
        namespace.delete_sync(keys[8])
        for key, text in ((keys[9], "{"), (keys[10], ""), (keys[11], " 1 "), (keys[12], "1 2"), (keys[13], "ä")):
            KVEntry.objects.using("default").filter(key=key).write_row(value=text)
        KVEntry.objects.using("default").filter(key=keys[14]).write_row(metadata="[]")

    await writers.run(write)
    read = await read_alike(namespace, keys)
    statuses = [outcome.status for outcome in read[7:15]]
    malformed = Status.MALFORMED
    assert statuses == [
        Status.EXPIRED, Status.MISSING, malformed, malformed, Status.VALUE, malformed, malformed, malformed,
    ]  # fmt: skip


@on_sqlite
async def test_what_is_no_plain_text_costs_no_other_row(namespace: KVNamespace) -> None:
    keys = keys_of(120)

    def write() -> None:
        fill(namespace, keys)
        overwrite(keys[3], "value", "X'7b7d'")
        overwrite(keys[4], "metadata", "X'7b7d'")
        overwrite(keys[5], "value", "'\"a' || char(0) || 'b\"'")

    await writers.run(write)
    read = await read_alike(namespace, keys)
    assert [outcome.key for outcome in read if not outcome.found] == keys[3:6]


@on_sqlite
async def test_damage_that_hides_damage_gives_no_row_the_value_of_another(namespace: KVNamespace) -> None:
    keys = keys_of(120)

    def write() -> None:
        for number, key in enumerate(keys):
            namespace.put_sync(key, 10 + number % 90)
        # Half a character at the end of one and at the beginning of the next: shorter as neighbours than alone.
        overwrite(keys[10], "value", "CAST(X'31C3' AS TEXT)")
        overwrite(keys[11], "value", "CAST(X'A931' AS TEXT)")
        # Longer than SQLite says, by as much.
        overwrite(keys[30], "value", "'1' || char(0)")

    await writers.run(write)
    read = await read_alike(namespace, keys)
    assert [outcome.status for outcome in (read[10], read[11], read[30])] == [
        Status.UNREADABLE, Status.UNREADABLE, Status.MALFORMED,
    ]  # fmt: skip


@on_sqlite
async def test_a_number_that_json_does_not_have_costs_no_row(namespace: KVNamespace) -> None:
    keys = keys_of(120)
    await writers.run(fill, namespace, keys)
    await writers.run(overwrite, keys[3], "version", "9e999")
    assert [outcome.value for outcome in await many(namespace, keys)] == keys


async def test_a_stream_that_waits_for_nothing_lets_others_have_their_turn(
    namespace: KVNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vskill.kv.namespace.LONGEST_TURN", 0.0)
    keys = keys_of(2000)
    await writers.run(fill, namespace, keys)
    probe.reset()
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.create_task(take_turns())
    before = 0
    async for outcome in namespace.get_many(keys):
        if outcome.key == keys[0]:
            # The loop stands still until all that is on its way has arrived, so that nothing is left to wait for.
            readers.close()
            before = turns
    others.cancel()
    assert turns > before


async def test_a_chunk_costs_one_select_and_gives_out_only_what_was_asked_for(namespace: KVNamespace) -> None:
    keys = keys_of(2000)
    await writers.run(fill, namespace, keys)
    asked = [key for number, key in enumerate(keys) if number % 20]
    probe.reset()
    assert [outcome.value for outcome in await many(namespace, asked)] == asked
    assert probe.selects == -(-len(asked) // 500)


def test_a_bad_row_that_was_not_asked_for_costs_no_other(namespace: KVNamespace) -> None:
    keys = keys_of(1200)
    fill(namespace, keys)
    asked = [key for key in keys if key != keys[250]]
    with unreadable([keys[250]]):
        outcomes = async_to_sync(many)(namespace, asked)
    assert [outcome.value for outcome in outcomes] == asked
