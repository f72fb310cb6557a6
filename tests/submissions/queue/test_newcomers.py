"""A claim that leaves publishers out: whom it finds, that it stays atomic, and what it costs beside a backlog."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from submissions.models import QueueMessage
from submissions.queue.base import Message, MessageBatch
from submissions.queue.database import get_queue
from submissions.queue.newcomers import LOOKS_AT, as_parameter
from submissions.queue.pause import pause
from tests.submissions.queue.messages import KIND, let_leases_end, receive, row, send_of
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
in_thread = sync_to_async


def found(env: WorkerEnv, *without: str, limit: int = 100) -> list[str]:
    """Return the subjects of what is received without some publishers."""
    batch = async_to_sync(receive)(env, limit, without=without)
    return [message.subject for message in batch.messages]


class TestWhoIsFound:
    def test_others_than_those_left_out_and_those_below_them(self, env: WorkerEnv) -> None:
        for publisher in ("host/a", "host/ab", "host", "hosts/a", "", "HOST/a"):
            send_of(env, publisher)
        assert found(env, "host") == ["hosts/a 0", " 0", "HOST/a 0"]
        assert found(env, "host/a") == ["host/ab 0", "host 0"]
        assert found(env) == ["host/a 0"]

    @pytest.mark.parametrize("name", ["h%", "h_st", "it's", 'a"b', "ü/ñ", "a\\b", "%(x)s"])
    def test_a_name_means_itself(self, env: WorkerEnv, name: str) -> None:
        send_of(env, name)
        send_of(env, f"{name}/below")
        send_of(env, "host")
        assert found(env, name) == ["host 0"]

    def test_the_messages_of_newcomers_come_in_turn_and_within_the_limit(self, env: WorkerEnv) -> None:
        send_of(env, "slow", 20)
        send_of(env, "b", 3)
        send_of(env, "c", 3)
        assert found(env, "slow", limit=3) == ["b 0", "c 0", "b 1"]

    def test_each_message_says_whose_it_is(self, env: WorkerEnv) -> None:
        send_of(env, "b")
        [message] = async_to_sync(receive)(env, without=["slow"]).messages
        assert message.publisher == "b"

    def test_only_those_near_the_front_are_looked_at(self, env: WorkerEnv) -> None:
        send_of(env, "slow", LOOKS_AT, weight=1000.0)
        send_of(env, "rare")
        assert found(env, "slow") == []
        send_of(env, "slow", begin=LOOKS_AT)
        assert found(env, "nobody", limit=1) == ["slow 0"]
        assert found(env, "slow") == ["rare 0"]

    def test_a_paused_queue_gives_nothing(self, env: WorkerEnv) -> None:
        send_of(env, "b")
        pause(env, who="ada", why="maintenance")
        assert found(env, "slow") == []

    def test_what_one_more_crash_would_park_is_left_to_its_isolation(self, env: WorkerEnv) -> None:
        send_of(env, "b", 2)
        QueueMessage.objects.filter(subject="b 0").update(crashes=2)
        assert found(env, "slow") == ["b 1"]

    def test_work_of_a_dead_worker_is_found_and_its_crash_counted(self, env: WorkerEnv) -> None:
        send_of(env, "b")
        assert found(env, "slow") == ["b 0"]
        assert found(env, "slow") == []
        let_leases_end(env)
        assert found(env, "slow") == ["b 0"]
        assert row(env, "b 0").crashes == 1


async def test_several_who_claim_at_once_get_a_message_once(env: WorkerEnv) -> None:
    await in_thread(send_of)(env, "slow", 20)
    await in_thread(send_of)(env, "b", 30)
    batches = await asyncio.gather(*(receive(env, 3, without=["slow"]) for _ in range(12)))
    taken = [message.subject for batch in batches for message in batch.messages]
    assert len(taken) == len(set(taken))
    rest = await receive(env, without=["slow"])
    assert {*taken, *(message.subject for message in rest.messages)} == {f"b {number}" for number in range(30)}


def _claim(env: WorkerEnv, **changed: Any) -> dict[str, Any]:
    texts = {"environment": env.name, "token": "t", "worker": "w", "reason": ""}
    numbers = {"max_crashes": settings.QUEUE_MAX_CRASHES, "limit": 3, "lease": 90, "full_batch": 1, "oldest": 0}
    return {**texts, **numbers, "without": as_parameter(["flood"]), **changed}


def test_a_claim_that_finds_nobody_is_a_read_on_sqlite(env: WorkerEnv) -> None:
    send_of(env, "flood", 20)
    queue = get_queue(env)
    queue._receive(_claim(env), False)  # looks for messages without a turn, once a second
    with CaptureQueriesContext(connection) as asked:
        assert not queue._receive(_claim(env), False)
    [query] = [one["sql"] for one in asked if 'SELECT 1 FROM "submissions_queuemessage"' in one["sql"]] or [""]
    updates = [one for one in asked if "UPDATE" in one["sql"]]
    assert bool(query) is (connection.vendor == "sqlite")
    assert bool(updates) is (connection.vendor == "postgresql")


def _rows_met(plan: dict[str, Any]) -> int:
    """Return how many rows of the table, or entries of its indexes, the scans of a plan have met."""
    met = 0
    if plan.get("Relation Name") == "submissions_queuemessage" and "Scan" in plan["Node Type"]:
        removed = sum(plan.get(name, 0) for name in ("Rows Removed by Filter", "Rows Removed by Index Recheck"))
        met = (plan["Actual Rows"] + removed) * plan["Actual Loops"]
    return met + sum(_rows_met(below) for below in plan.get("Plans", []))


def _cost(env: WorkerEnv, limit: int) -> int:
    """Return what the statements of one claim cost: rows met on PostgreSQL, steps of its virtual machine on SQLite."""
    sql, claim = get_queue(env)._sql, _claim(env, limit=limit)
    statements = [sql.any_claimable(isolated=False, leaves_out=True)]
    statements.append(sql.claim(isolated=False, parks=False, leaves_out=True))
    with transaction.atomic(), connection.cursor() as cursor:
        cost = 0
        if connection.vendor == "postgresql":
            for statement in statements:
                cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", claim)
                [[plans]] = cursor.fetchall()
                cost += _rows_met((json.loads(plans) if isinstance(plans, str) else plans)[0]["Plan"])
        else:
            steps = 0

            def count() -> None:
                nonlocal steps
                steps += 1

            connection.connection.set_progress_handler(count, 1)
            try:
                for statement in statements:
                    cursor.execute(statement, claim)
                    cursor.fetchall()
            finally:
                connection.connection.set_progress_handler(None, 1)
            cost = steps
        transaction.set_rollback(True)
    return cost


class TestCost:
    @pytest.mark.parametrize("others", [0, 1], ids=["nobody else", "one of another"])
    def test_a_claim_costs_the_same_beside_a_thousand_of_a_flood_as_beside_ten_thousand(
        self, env: WorkerEnv, others: int
    ) -> None:
        costs = []
        for begin, count in ((0, 1_000), (1_000, 9_000)):
            rows = [
                QueueMessage(environment=env.name, kind=KIND, subject=f"{number}", publisher="flood", turn=number + 1.0)
                for number in range(begin, begin + count)
            ]
            QueueMessage.objects.bulk_create(rows)
            if not begin and others:
                send_of(env, "single")
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute("ANALYZE submissions_queuemessage")
            costs += [_cost(env, limit) for limit in (3, 30)]
        # PostgreSQL reads a table of a thousand rows whole.
        if connection.vendor == "postgresql":
            assert max(costs[2:]) <= 2 * (LOOKS_AT + 10)
        assert max(costs[2:]) <= 1.1 * max(costs[:2])


def test_messages_of_one_publisher_share_as_few_batches_as_they_can() -> None:
    publishers = ["a", "b", "a", "b", "c", "a", "b"]
    messages = tuple(
        Message(number, "public", KIND, publisher, "{}", "token", 0, 0, publisher)
        for number, publisher in enumerate(publishers)
    )
    parts = list(MessageBatch("public", messages).split(3))
    assert [[message.publisher for message in part.messages] for part in parts] == [list("aaa"), list("bbb"), ["c"]]
    assert [message.id for part in parts for message in part.messages] == [0, 2, 5, 1, 3, 6, 4]


async def test_a_message_that_waits_for_its_retry_is_found_after_it(env: WorkerEnv) -> None:
    await in_thread(send_of)(env, "b", delay=timedelta(hours=1))
    assert not await receive(env, without=["slow"])
