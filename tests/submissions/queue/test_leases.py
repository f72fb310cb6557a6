"""Leases are kept while work goes on, and work whose lease is lost stops before anybody else can begin it."""

from __future__ import annotations

import asyncio
import contextlib
from time import monotonic

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from pytest_django import Settings

from submissions.queue.base import Message
from submissions.queue.consumer import handle_submission_queue
from submissions.queue.database import DatabaseQueue, get_queue
from submissions.queue.leases import LeaseKeeper
from submissions.queue.machine_watch import MachineWatch
from submissions.queue.settlement import handle_message
from tests.submissions.queue.consumers import Recorder
from tests.submissions.queue.messages import let_leases_end, receive, receive_one, row, send
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
in_thread = sync_to_async


async def test_the_leases_of_work_that_goes_on_are_renewed(env: WorkerEnv) -> None:
    await in_thread(send)(env, "one", "two")
    keeper = LeaseKeeper()
    messages = (await receive(env)).messages
    before = [(await in_thread(row)(env, subject)).leased_until for subject in ("one", "two")]
    with (
        keeper.holding(messages[0], get_queue(env), monotonic()),
        keeper.holding(messages[1], get_queue(env), monotonic()),
    ):
        await keeper.renew()
        after = [(await in_thread(row)(env, subject)).leased_until for subject in ("one", "two")]
    assert all(old is not None and new is not None and new > old for old, new in zip(before, after, strict=True))
    assert len(keeper) == 0


async def test_work_stops_when_its_lease_could_not_be_renewed_in_time(env: WorkerEnv, settings: Settings) -> None:
    settings.QUEUE_LEASE, settings.QUEUE_HEARTBEAT = 0.3, 1_000.0
    await in_thread(send)(env, "one")
    stopped_at: list[float] = []

    async def never(_message: Message) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped_at.append(monotonic())

    asked_at = monotonic()
    batch = await receive(env)
    report = await handle_submission_queue(batch, env, handlers=Recorder(never).handlers, received_at=asked_at)
    assert report.ends == {"lost": 1}
    assert len(stopped_at) == 1
    # Its worker lives, so that the next one does not count a crash.
    after = await in_thread(row)(env, "one")
    assert (after.lease_token, after.leased_until, after.crashes, after.errors) == ("", None, 0, 0)
    assert (await receive_one(env)).crashes == 0


async def test_work_stops_while_enough_of_its_lease_is_left_to_end_its_last_statement(env: WorkerEnv) -> None:
    await in_thread(send)(env, "early", "late")
    messages = (await receive(env)).messages
    keeper = LeaseKeeper()

    async def work(message: Message, elapsed: float) -> bool:
        with keeper.holding(message, get_queue(env), monotonic() - elapsed * settings.QUEUE_LEASE) as held:
            with contextlib.suppress(asyncio.CancelledError):
                await keeper.renew()
                await asyncio.sleep(0)
            return held.lost

    assert await asyncio.create_task(work(messages[0], 0.5)) is False
    assert await asyncio.create_task(work(messages[1], 0.9)) is True


async def test_work_that_lost_a_lease_which_has_ended_counts_no_crash(env: WorkerEnv) -> None:
    await in_thread(send)(env, "one")
    message = await receive_one(env)
    await in_thread(let_leases_end)(env)

    async def never(_message: Message) -> None:
        await asyncio.Event().wait()

    recorder, queue, keeper = Recorder(never), get_queue(env), LeaseKeeper()
    received_at = monotonic() - settings.QUEUE_LEASE
    working = asyncio.create_task(
        handle_message(message, queue, recorder.handlers, keeper, received_at, MachineWatch())
    )
    await asyncio.sleep(0)
    await keeper.renew()
    assert await working == "lost"

    after = await in_thread(row)(env, "one")
    assert (after.lease_token, after.leased_until) == ("", None)
    assert (await receive_one(env)).crashes == 0


async def test_a_lease_that_was_lost_to_another_worker_is_left_to_it(env: WorkerEnv) -> None:
    await in_thread(send)(env, "one")
    mine = await receive_one(env)
    await in_thread(let_leases_end)(env)
    theirs = await receive_one(env)
    assert not await get_queue(env).surrender(mine)
    assert (await in_thread(row)(env, "one")).lease_token == theirs.token


async def test_work_stops_when_a_renewal_finds_the_lease_gone(env: WorkerEnv, settings: Settings) -> None:
    settings.QUEUE_HEARTBEAT = 0.01
    await in_thread(send)(env, "one", "two")
    both_started = asyncio.Barrier(3)

    async def never(_message: Message) -> None:
        await both_started.wait()
        await asyncio.Event().wait()

    batch = await receive(env)
    handling = asyncio.create_task(handle_submission_queue(batch, env, handlers=Recorder(never).handlers))
    await both_started.wait()
    await in_thread(let_leases_end)(env)
    assert (await handling).ends == {"lost": 2}


async def test_a_database_that_does_not_answer_leaves_the_decision_to_the_deadline(
    env: WorkerEnv, caplog: pytest.LogCaptureFixture
) -> None:
    await in_thread(send)(env, "one")
    message = await receive_one(env)
    keeper = LeaseKeeper()
    nowhere = get_queue(WorkerEnv(name="nowhere", database="no_such_alias"))
    with keeper.holding(message, nowhere, monotonic()) as held:
        await keeper.renew()
        assert not held.lost
    assert "could not be renewed, trying again" in caplog.text


async def test_a_lease_is_held_by_a_task_alone(env: WorkerEnv) -> None:
    await in_thread(send)(env, "one")
    message = await receive_one(env)
    failed: list[BaseException] = []

    def outside() -> None:
        try:
            with LeaseKeeper().holding(message, get_queue(env), monotonic()):
                pass
        except RuntimeError as error:
            failed.append(error)
        told.set()

    told = asyncio.Event()
    asyncio.get_running_loop().call_soon(outside)
    await told.wait()
    assert [str(error) for error in failed] == ["a lease is held by a task"]


async def test_messages_of_two_databases_with_one_id_are_kept_apart(env: WorkerEnv) -> None:
    await in_thread(send)(env, "one")
    message = await receive_one(env)
    keeper = LeaseKeeper()
    with keeper.holding(message, get_queue(env), monotonic()):
        # Another database counts its messages from 1 as well.
        with keeper.holding(message, DatabaseQueue("elsewhere"), monotonic()):
            assert len(keeper) == 2
        assert len(keeper) == 1


async def test_a_renewal_after_a_stall_does_not_bless_what_was_leased_anew(env: WorkerEnv) -> None:
    await in_thread(send)(env, "one")
    stale = await receive_one(env)
    await in_thread(let_leases_end)(env)
    fresh = await receive_one(env)
    assert fresh.id == stale.id
    keeper = LeaseKeeper()

    async def stalled() -> str:
        with keeper.holding(stale, get_queue(env), monotonic() - settings.QUEUE_LEASE) as held:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                assert held.lost
        return "stopped"

    zombie = asyncio.create_task(stalled())
    await asyncio.sleep(0)
    with keeper.holding(fresh, get_queue(env), monotonic()) as held:
        await keeper.renew()
        assert await zombie == "stopped"
        assert not held.lost
