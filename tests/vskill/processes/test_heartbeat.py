"""Signs of life: seen while a process lives, whatever a database does meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import InterfaceError
from django.test import AsyncClient, Client

from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.processes import heartbeat as heartbeats
from vskill.processes.heartbeat import health, heartbeat, living, process_name

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_process_is_seen_while_it_lives_and_not_after(env: WorkerEnv) -> None:
    async with heartbeat("consumer", [env]):
        assert await living(env, "consumer") == [process_name()]
    parts = await health(env, ["consumer"], details=True)

    assert parts == {"consumer": {"alive": False, "processes": []}}


async def parts(**options: Any) -> dict[str, Any]:
    """Return the parts that /healthz tells about."""
    found: dict[str, Any] = (await AsyncClient().get("/healthz", **options)).json()["parts"]
    return found


async def test_what_a_process_tells_about_itself_is_for_this_machine_and_for_staff(env: WorkerEnv) -> None:
    elsewhere: dict[str, Any] = {"headers": {"X-Forwarded-For": "203.0.113.7"}}
    details = {"enginesWithoutNetwork": True}
    staff = await get_user_model()._default_manager.acreate(username="ada", is_staff=True)
    client = AsyncClient()
    await client.aforce_login(staff)
    async with heartbeat("consumer", [env], details=details), heartbeat("scheduler", [env]):
        assert (await parts())["consumer"]["details"] == {process_name(): details}
        assert "details" not in (await parts())["scheduler"]
        assert "details" not in (await parts(**elsewhere))["consumer"]
        assert (await client.get("/healthz", **elsewhere)).json()["parts"]["consumer"]["details"] == {
            process_name(): details
        }


@pytest.mark.parametrize(
    ("address", "seen"), [("127.0.0.1", True), ("::1", True), ("203.0.113.7", False), ("10.0.0.1", False), ("", False)]
)
def test_this_machine_is_known_by_the_address_that_asks(env: WorkerEnv, address: str, seen: bool) -> None:
    put = KVNamespace(KVEntry, env).put_sync
    put("heartbeat:consumer:one", {"role": "consumer", "details": {"enginesWithoutNetwork": False}})
    part = Client().get("/healthz", REMOTE_ADDR=address).json()["parts"]["consumer"]
    assert ("details" in part) is seen


async def test_a_connection_that_breaks_does_not_end_the_beat(env: WorkerEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    beaten, beats, real = asyncio.Event(), 0, KVNamespace.put

    async def put(namespace: KVNamespace, *arguments: Any, **options: Any) -> int:
        nonlocal beats
        beats += 1
        if beats == 2:
            raise InterfaceError("connection already closed")
        if beats == 3:
            beaten.set()
        return await real(namespace, *arguments, **options)

    monkeypatch.setattr(heartbeats, "INTERVAL", 0.0)
    monkeypatch.setattr(KVNamespace, "put", put)
    async with heartbeat("consumer", [env]), asyncio.timeout(30):
        await beaten.wait()


async def test_a_process_that_does_no_work_says_why_and_counts_as_dead_until_another_works(env: WorkerEnv) -> None:
    async with heartbeat("consumer", [env], fault=lambda: "No space left on device"):
        assert (await health(env, ["consumer"]))["consumer"] == {"alive": False}
        parts = await health(env, ["consumer"], details=True)
        assert parts["consumer"] == {
            "alive": False,
            "processes": [process_name()],
            "faults": {process_name(): "No space left on device"},
        }
        await KVNamespace(KVEntry, env).put("heartbeat:consumer:other:1", {"role": "consumer", "fault": ""})
        assert (await health(env, ["consumer"]))["consumer"]["alive"]
