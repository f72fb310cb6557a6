"""Followed repositories for tests: made due, polled without pauses, and read back."""

from __future__ import annotations

from typing import Any

from asgiref.sync import async_to_sync

from marketplace.following import Followed, follow_key, follow_namespace, followed_in
from submissions.following.poll import PollReport, poll_followed
from submissions.following.store import follow
from submissions.models import SubmissionEntry
from tests.submissions.front_door import drain
from vskill.environments import WorkerEnv
from vskill.kv.codec import decode
from vskill.worker_context import run_with_worker_env

PAST = "2020-01-01T00:00:00.000Z"


def begin(env: WorkerEnv, url: str, *, branch: str = "", tags: str = "") -> str:
    """Follow a repository and return its normalised address."""
    plain = url.removesuffix(".git")
    follow(env, plain, branch=branch, tags=tags, actor="test")
    return plain


def poll(env: WorkerEnv, **how: Any) -> PollReport:
    """Poll once without pauses, and return the report."""

    async def main() -> PollReport:
        return await run_with_worker_env(env, poll_followed, **{"limit": 10, "seconds": 60.0, "pause": 0.0, **how})

    return async_to_sync(main)()


def kept(env: WorkerEnv, url: str) -> Followed:
    """Return what is kept of a repository, also of one that is followed no longer."""
    found = followed_in(follow_namespace(env).get_sync(follow_key(url)))
    assert found is not None
    return found


def make_due(env: WorkerEnv, url: str) -> None:
    """Let a repository be due."""
    namespace = follow_namespace(env)
    value = namespace.get_sync(follow_key(url)).require()
    namespace.put_sync(follow_key(url), {**value, "dueAt": PAST, "lookAt": PAST})


def again(env: WorkerEnv, url: str, **how: Any) -> PollReport:
    """Let a repository be due and poll once."""
    make_due(env, url)
    return poll(env, **how)


def work_off(env: WorkerEnv) -> None:
    """Let a real consumer check what waits."""
    async_to_sync(drain)(env)


def submissions_of(env: WorkerEnv) -> list[tuple[str, str, str]]:
    """Return name, state and commit of every submission, the oldest first."""
    rows = SubmissionEntry.objects.using(env.database).filter(namespace=env.name).order_by("submitted_at", "id")
    return [(row.skill_name, row.state, str(decode(row.value)["commitSha"])) for row in rows]
