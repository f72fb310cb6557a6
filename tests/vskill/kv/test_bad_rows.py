"""A row that the database fails to give out costs itself and nothing beside it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction

from tests.vskill.kv.database_layer import TABLE, fill, unreadable
from vskill.environments import WorkerEnv
from vskill.kv.listing import KeyPage, ListedKey
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Outcome, Status
from vskill.kv.probe import probe

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def namespace(env: WorkerEnv) -> KVNamespace:
    return KVNamespace(KVEntry, env)


@pytest.fixture(autouse=True)
def _counters_start_anew() -> Iterator[None]:
    probe.reset()
    yield
    assert probe.reads_in_flight == 0
    assert probe.selects_in_flight == 0


def keys_of(count: int) -> list[str]:
    return [f"key-{number:05}" for number in range(count)]


async def gathered(namespace: KVNamespace, keys: list[str]) -> list[Outcome]:
    return await asyncio.gather(*(namespace.get(key) for key in keys))


async def many(namespace: KVNamespace, keys: list[str]) -> list[Outcome]:
    return [outcome async for outcome in namespace.get_many(keys)]


Read = Callable[[KVNamespace, list[str]], Coroutine[Any, Any, list[Outcome]]]
READERS: list[Read] = [gathered, many]


@pytest.mark.parametrize("read", READERS)
def test_two_bad_rows_among_thousands_cost_those_two_and_few_selects(namespace: KVNamespace, read: Read) -> None:
    keys = keys_of(3000)
    fill(namespace, keys)
    bad = {keys[17], keys[2222]}
    with unreadable(sorted(bad)):
        outcomes = async_to_sync(read)(namespace, keys)
    assert {outcome.key for outcome in outcomes if outcome.status is Status.UNREADABLE} == bad
    assert [outcome.value for outcome in outcomes if outcome.found] == [key for key in keys if key not in bad]
    # Six chunks; a bad row of 500 is found by 18 selects, after one that shows that the table itself can be read.
    assert probe.selects <= 6 + 2 * (18 + 1)


@pytest.mark.parametrize("bad_rows", [1, 10, 50])
def test_up_to_a_tenth_of_a_chunk_may_be_bad_without_loss_of_another(namespace: KVNamespace, bad_rows: int) -> None:
    keys = keys_of(500)
    fill(namespace, keys)
    bad = set(random.Random(bad_rows).sample(keys, bad_rows))
    with unreadable(sorted(bad)):
        outcomes = async_to_sync(many)(namespace, keys)
    assert {outcome.key for outcome in outcomes if not outcome.found} == bad
    assert all("UTF-8" in outcome.detail or "block 7" in outcome.detail for outcome in outcomes if not outcome.found)


def test_a_chunk_that_is_all_bad_is_given_up_within_the_budget_and_counted(namespace: KVNamespace) -> None:
    keys = keys_of(500)
    fill(namespace, [*keys, "good"])
    with unreadable(keys):
        outcomes = async_to_sync(many)(namespace, [*keys, "good"])
    assert Counter(outcome.status for outcome in outcomes) == {Status.UNREADABLE: 500, Status.VALUE: 1}
    # As many selects as reading one key after the other would take, and the three that are not halves.
    assert probe.selects <= 500 + 3


def test_readers_that_wait_together_settle_alone_whatever_happens_to_the_others(namespace: KVNamespace) -> None:
    keys = keys_of(1200)
    fill(namespace, keys)
    namespace.put_sync(keys[3], "old", expires_at=datetime(2020, 1, 1, tzinfo=UTC))
    namespace.delete_sync(keys[4])
    KVEntry.objects.using("default").filter(key=keys[5]).write_row(value="{")
    bad = {keys[1], keys[2], keys[700]}
    expected = dict.fromkeys(keys, Status.VALUE) | dict.fromkeys(bad, Status.UNREADABLE)
    expected |= {keys[3]: Status.EXPIRED, keys[4]: Status.MISSING, keys[5]: Status.MALFORMED}
    cancelled = {keys[1], keys[6], keys[1100]}

    async def read() -> dict[str, Status]:
        tasks = {key: asyncio.create_task(namespace.get(key)) for key in keys}
        # All of them wait for their select by now.
        await asyncio.sleep(0)
        for key in cancelled:
            tasks[key].cancel()
        settled = await asyncio.gather(*tasks.values(), return_exceptions=True)
        assert {key for key, task in tasks.items() if task.cancelled()} == cancelled
        return {outcome.key: outcome.status for outcome in settled if isinstance(outcome, Outcome)}

    with unreadable(sorted(bad)):
        statuses = async_to_sync(read)()
    assert statuses == {key: status for key, status in expected.items() if key not in cancelled}


def test_a_bad_row_leaves_the_transaction_of_its_reader_usable(namespace: KVNamespace) -> None:
    fill(namespace, ["good", "bad"])
    with unreadable(["bad"]), transaction.atomic():
        assert namespace.get_sync("bad").status is Status.UNREADABLE
        assert namespace.get_sync("good").value == "good"
        assert KVEntry.objects.count() == 2


def test_a_listing_shows_the_key_of_a_row_whose_metadata_cannot_be_read(namespace: KVNamespace) -> None:
    for key in ("a", "b", "c"):
        namespace.put_sync(key, key, metadata={"of": key})
    with unreadable(["b"], column="metadata"):
        page = namespace.list_sync(limit=2)
        rest = namespace.list_sync(limit=2, cursor=page.cursor)
    assert page.keys == (ListedKey("a", {"of": "a"}), ListedKey("b", None))
    assert rest == KeyPage((ListedKey("c", {"of": "c"}),), list_complete=True)


def test_metadata_that_is_no_object_is_malformed(namespace: KVNamespace) -> None:
    fill(namespace, ["list", "text"])
    rows = KVEntry.objects.using("default")
    rows.filter(key="list").update(metadata="[]")
    rows.filter(key="text").update(metadata="{")
    assert namespace.get_sync("list").status is Status.MALFORMED
    assert namespace.get_sync("text").status is Status.MALFORMED
    assert namespace.list_sync().keys == (ListedKey("list", None), ListedKey("text", None))


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL refuses such a row when it is written")
class TestWhatSQLiteAloneCanHold:
    """Bytes where a text should be."""

    def overwrite(self, key: str, column: str, sql: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f'UPDATE {TABLE} SET "{column}" = {sql} WHERE "key" = %(key)s', {"key": key})  # noqa: S608 - our own words
            assert cursor.rowcount == 1

    def test_a_bad_row_can_be_deleted_and_written_anew(self, namespace: KVNamespace) -> None:
        fill(namespace, ["bad", "worse"])
        with unreadable(["bad", "worse"]):
            assert namespace.delete_sync("bad")
            assert namespace.put_sync("worse", "mended") == 2
        assert namespace.get_sync("bad").status is Status.MISSING
        assert namespace.get_sync("worse").value == "mended"

    def test_bytes_for_a_value_are_malformed_and_cost_no_other_row(self, namespace: KVNamespace) -> None:
        keys = keys_of(20)
        fill(namespace, keys)
        self.overwrite(keys[3], "value", "X'7b7d'")
        self.overwrite(keys[4], "metadata", "X'7b7d'")
        outcomes = async_to_sync(gathered)(namespace, keys)
        assert {outcome.key for outcome in outcomes if outcome.status is Status.MALFORMED} == {keys[3], keys[4]}
        assert sum(outcome.found for outcome in outcomes) == 18

    def test_a_key_that_is_no_text_is_counted_where_it_lies_and_hides_no_other(self, namespace: KVNamespace) -> None:
        keys = keys_of(10)
        fill(namespace, keys)
        for key in keys[2:6]:
            self.overwrite(key, "key", f"CAST(X'{key.encode().hex()}ff' AS TEXT)")
        first = namespace.list_sync("key-", limit=3)
        seen, unreadable_keys, page = [key.name for key in first.keys], first.unreadable, first
        while not page.list_complete:
            page = namespace.list_sync("key-", limit=3, cursor=page.cursor)
            seen += [key.name for key in page.keys]
            unreadable_keys += page.unreadable
        assert seen == [*keys[:2], *keys[6:]]
        assert unreadable_keys == 4


def test_a_huge_value_is_read_beside_small_ones(namespace: KVNamespace) -> None:
    text = "0123456789" * 2_000_000
    namespace.put_sync("huge", text)
    fill(namespace, ["a", "b"])
    outcomes = async_to_sync(gathered)(namespace, ["a", "huge", "b"])
    assert [outcome.value for outcome in outcomes] == ["a", text, "b"]
