"""One child sends many webhooks in turn: each to the addresses of its own check, and none waits for a slow one."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from submissions.notifications import send
from submissions.notifications.send import webhook_policy
from submissions.notifications.senders import Senders
from submissions.sandbox.fork_server import script_server
from submissions.source.pinned_child import Asked
from submissions.source.pinning import Pinned
from submissions.source.urls import SourcePolicy
from tests.submissions.notifications.receiver import Answer, Receiver, floods, receiver, says, stays_silent
from tests.submissions.source.connect_proxy import connect_proxy
from vskill.environments import WorkerEnv

HOST = "git.test.example"


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as one:
        yield one


@pytest.fixture
def policy(env: WorkerEnv, hook: Receiver) -> SourcePolicy:
    return webhook_policy(hook.trusted_by(env), of_operators=True)


class Post:
    """Posts to a receiver by the children of one run."""

    def __init__(self, senders: Senders, hook: Receiver, policy: SourcePolicy) -> None:
        self._senders, self._hook, self._policy = senders, hook, policy

    async def __call__(
        self,
        path: str = "/hook",
        *,
        at: tuple[str, ...] = ("127.0.0.1",),
        of_operators: bool = True,
        seconds: float = 20.0,
        policy: SourcePolicy | None = None,
    ) -> Asked:
        return await self._senders.send(
            f"https://{HOST}:{self._hook.port}{path}",
            Pinned(HOST, self._hook.port, at),
            {"X-Which": path},
            b"{}",
            policy or self._policy,
            of_operators=of_operators,
            seconds=seconds,
        )


def living() -> list[str]:
    """Return the children of the fork server."""
    assert script_server._process is not None
    pid = script_server._process.pid
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


async def test_few_children_send_many_and_end_with_the_run(hook: Receiver, policy: SourcePolicy) -> None:
    async with Senders(2) as senders:
        post = Post(senders, hook, policy)

        async def some(which: int) -> list[Asked]:
            return [await post(f"/{which}-{number}") for number in range(8)]

        found = [asked.found["status"] for each in await asyncio.gather(some(0), some(1)) for asked in each]
        assert found == [204] * 16
        assert senders.begun == 2
        assert len(living()) == 2
    assert living() == []
    # Nothing of one is in another.
    assert all(one.headers["x-which"] == one.path for one in hook.taken)
    assert len({one.path for one in hook.taken}) == 16


@pytest.mark.parametrize(("ends", "clean"), [(stays_silent, False), (floods, True)])
async def test_one_that_does_not_come_to_its_end_takes_its_child_with_it_and_nobody_else(
    hook: Receiver, policy: SourcePolicy, ends: Answer, clean: bool
) -> None:
    hook.answers["/bad"] = ends
    async with Senders(2) as senders:
        post = Post(senders, hook, policy)
        first = await post()
        bad = await post("/bad", seconds=1.0)
        after = await post()
        assert [one.found.get("status") for one in (first, after)] == [204, 204]
        assert (first.clean, after.clean) == (True, True)
        # Of a flood the start is read, and its child goes on.
        assert (bad.clean, senders.begun) == (clean, 1 if clean else 2)


async def test_each_goes_to_the_addresses_that_were_checked_for_it_and_not_to_those_of_one_before(
    hook: Receiver, policy: SourcePolicy
) -> None:
    async with Senders(1) as senders:
        post = Post(senders, hook, policy)
        assert (await post()).found["status"] == 204
        # Nobody listens there, and the connection of the one before is not used again.
        assert (await post(at=("127.0.0.2",))).found["error"] == "its host could not be reached"
        assert (await post()).found["status"] == 204
        assert senders.begun == 1
    assert len(hook.taken) == 2


async def test_no_child_sends_for_accounts_and_for_operators_or_by_another_policy(
    hook: Receiver, policy: SourcePolicy
) -> None:
    untrusting = replace(policy, ca_file=None)
    async with Senders(3) as senders:
        post = Post(senders, hook, policy)
        for _twice in range(2):
            for of_operators in (True, False):
                assert (await post(of_operators=of_operators)).found["status"] == 204
            assert "certificate" in (await post(policy=untrusting)).found["error"]
        assert senders.begun == 3


async def test_a_child_that_waits_makes_place_for_one_that_is_needed(hook: Receiver, policy: SourcePolicy) -> None:
    async with Senders(1) as senders:
        post = Post(senders, hook, policy)
        for of_operators in (True, False, True):
            assert (await post(of_operators=of_operators)).found["status"] == 204
            assert len(living()) == 1
        assert senders.begun == 3


async def test_a_webhook_to_a_host_that_only_the_proxy_reaches_goes_through_it(hook: Receiver, env: WorkerEnv) -> None:
    with connect_proxy() as proxy:
        through = replace(env, policy=replace(hook.trusted_by(env).policy, source_proxy=proxy.url))
        url = f"https://{HOST}:{hook.port}/hook"
        async with Senders(1) as senders:
            for status, taken in ((403, False), (200, True)):
                proxy.status = status
                answer = await send.post(through, url, {}, b"{}", senders=senders, of_operators=False)
                assert answer.taken is taken
                assert len(hook.taken) == taken
        assert proxy.targets == [f"{HOST}:{hook.port}"] * 2


async def test_many_go_through_a_proxy_by_one_child(hook: Receiver, policy: SourcePolicy, env: WorkerEnv) -> None:
    with connect_proxy() as proxy:
        through = webhook_policy(
            replace(env, policy=replace(hook.trusted_by(env).policy, source_proxy=proxy.url)), of_operators=True
        )
        async with Senders(1) as senders:
            post = Post(senders, hook, through)
            assert [(await post(at=())).found["status"] for _ in range(3)] == [204, 204, 204]
            assert senders.begun == 1


async def test_a_child_that_was_killed_has_answered_nothing_and_the_next_one_is_sent(
    hook: Receiver, policy: SourcePolicy
) -> None:
    async with Senders(1) as senders:
        post = Post(senders, hook, policy)
        hook.answers["/held"] = stays_silent
        held = asyncio.ensure_future(post("/held"))
        async with asyncio.timeout(60):
            while not hook.taken:  # noqa: ASYNC110 - another thread takes
                await asyncio.sleep(0.01)
        [pid] = living()
        os.kill(int(pid), signal.SIGKILL)
        ended = await held
        assert (dict(ended.found), ended.clean, ended.timed_out) == ({}, False, False)
        assert (await post()).found["status"] == 204


async def test_a_run_that_is_cancelled_leaves_no_child(hook: Receiver, policy: SourcePolicy) -> None:
    hook.answers["/held"] = stays_silent

    async def run() -> None:
        async with Senders(1) as senders:
            await Post(senders, hook, policy)("/held")

    task = asyncio.ensure_future(run())
    async with asyncio.timeout(60):
        while not hook.taken:  # noqa: ASYNC110 - another thread takes
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert living() == []


async def test_what_a_receiver_says_is_bounded(hook: Receiver, policy: SourcePolicy) -> None:
    hook.answers["/long"] = says(200, "x" * 5000)
    async with Senders(1) as senders:
        asked = await Post(senders, hook, policy)("/long")
    assert len(base64.b64decode(asked.found["answer"])) == 1024
