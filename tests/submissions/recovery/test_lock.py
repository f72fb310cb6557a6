"""The lock of the sweeps: one at a time, and no trouble of the lock is trouble of the sweep."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError
from django.db.models import F
from pytest_django import Settings

from submissions.recovery.sweep import Result, recover_stuck
from tests.loop_time import let_time_pass
from tests.submissions.factories import make_submissions
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.threads import writers
from vskill.processes import run_lock as module
from vskill.processes.run_lock import LOCK_TTL, AlreadyRunning, lock_key, run_lock
from vskill.worker_context import EnvClosed, run_with_worker_env

pytestmark = pytest.mark.django_db(transaction=True)
in_thread = sync_to_async
LONG_AGO = timedelta(minutes=30)
TTL = LOCK_TTL.total_seconds()
WORK = "recover_stuck"
LOCK_KEY = lock_key(WORK)


async def test_a_sweep_leaves_another_alone_and_a_dry_run_needs_no_lock(env: WorkerEnv) -> None:
    await in_thread(make_submissions)(env, 1, age=LONG_AGO)
    async with run_lock(env, WORK):
        with pytest.raises(AlreadyRunning, match="Another recover_stuck of 'default' is running"):
            await recover_stuck(env)
        assert (await recover_stuck(env, dry_run=True)).count(Result.WOULD_RECOVER) == 1
    assert (await recover_stuck(env)).count(Result.RECOVERED) == 1


async def test_the_lock_is_given_back_after_a_failure(env: WorkerEnv) -> None:
    for _time in range(2):
        with pytest.raises(ZeroDivisionError):
            async with run_lock(env, WORK):
                raise ZeroDivisionError
    assert not await KVEntry.objects.filter(key=LOCK_KEY).aexists()


async def test_the_lock_of_a_holder_that_died_ends_by_itself(env: WorkerEnv) -> None:
    await KVNamespace(KVEntry, env).put(LOCK_KEY, {"holder": "dead"}, ttl=timedelta(seconds=10))
    await KVEntry.objects.filter(key=LOCK_KEY).aupdate(expires_at=F("expires_at") - timedelta(seconds=11))
    async with run_lock(env, WORK):
        assert await KVEntry.objects.filter(key=LOCK_KEY, value__contains="dead").acount() == 0


async def test_a_lock_that_was_lost_is_left_to_its_new_holder(env: WorkerEnv) -> None:
    async with run_lock(env, WORK):
        await KVNamespace(KVEntry, env).put(LOCK_KEY, {"holder": "another"})
    assert (await KVNamespace(KVEntry, env).get(LOCK_KEY)).value == {"holder": "another"}


class Sweep:
    """A sweep under the lock, which ends when the test says so."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()

    async def run(self, env: WorkerEnv) -> str:
        """Hold the lock until the sweep may end, and return or raise what came out."""
        async with run_lock(env, WORK):
            self.begun.set()
            await self.may_end.wait()
            if self._error is not None:
                raise self._error
            return "swept"

    async def begin(self, env: WorkerEnv) -> asyncio.Task[str]:
        """Start it and return it once it holds the lock."""
        running = asyncio.create_task(self.run(env))
        await self.begun.wait()
        return running


async def test_the_lock_is_renewed_while_the_sweep_goes_on_and_then_given_back(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed = asyncio.Event()

    class Watched(KVNamespace):
        async def put(self, key: str, value: Any, *, expect_version: int | None = None, **how: Any) -> int:
            version = await super().put(key, value, expect_version=expect_version, **how)
            if expect_version:
                renewed.set()
            return version

    monkeypatch.setattr(module, "KVNamespace", Watched)
    sweep = Sweep()
    running = await sweep.begin(env)
    written = await KVEntry.objects.aget(key=LOCK_KEY)
    await let_time_pass(TTL)
    await renewed.wait()
    assert (await KVEntry.objects.aget(key=LOCK_KEY)).version > written.version
    sweep.may_end.set()

    assert await running == "swept"
    assert not await KVEntry.objects.filter(key=LOCK_KEY).aexists()


ERRORS = [
    InterfaceError("the connection is closed"),
    OperationalError("the database has gone"),
    RuntimeError("no more threads can be started"),
]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
async def test_a_renewal_that_fails_is_tried_again_and_hides_no_result(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    renewals: list[str] = []

    class Troubled(KVNamespace):
        async def put(self, key: str, value: Any, *, expect_version: int | None = None, **how: Any) -> int:
            if expect_version:
                renewals.append(key)
                if len(renewals) == 1:
                    raise error
            return await super().put(key, value, expect_version=expect_version, **how)

    monkeypatch.setattr(module, "KVNamespace", Troubled)
    sweep = Sweep()
    running = await sweep.begin(env)
    await let_time_pass(TTL)
    await let_time_pass(TTL)
    sweep.may_end.set()

    assert await running == "swept"
    assert len(renewals) == 2
    assert f"could not be renewed: {error}" in caplog.text
    assert not await KVEntry.objects.filter(key=LOCK_KEY).aexists()


async def _outlive_its_scope(env: WorkerEnv, sweep: Sweep) -> str:
    running = await run_with_worker_env(env, sweep.begin, env)
    await let_time_pass(TTL)
    sweep.may_end.set()
    return await running


async def test_a_lock_that_cannot_be_given_back_hides_no_result(
    env: WorkerEnv, caplog: pytest.LogCaptureFixture
) -> None:
    assert await _outlive_its_scope(env, Sweep()) == "swept"
    assert "could not be given back and ends by itself" in caplog.text


async def test_a_lock_that_cannot_be_given_back_hides_no_error_of_the_sweep(env: WorkerEnv) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        await _outlive_its_scope(env, Sweep(ZeroDivisionError("half-way")))
    assert not isinstance(raised.value.__context__, EnvClosed)


async def test_a_database_that_stands_still_does_not_keep_the_result_of_the_sweep(
    env: WorkerEnv, settings: Settings
) -> None:
    settings.KV_WRITE_WORKERS = 1
    sweep, goes_on = Sweep(), threading.Event()
    running = await sweep.begin(env)
    writers.submit(goes_on.wait)
    try:
        sweep.may_end.set()
        await asyncio.sleep(0)
        await let_time_pass(2 * TTL)
        assert await running == "swept"
    finally:
        goes_on.set()
