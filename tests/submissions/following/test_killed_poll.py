"""Whatever dies while followed repositories are polled, each new commit is submitted once."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from django.db.models import F
from pytest_django.fixtures import Settings

from marketplace.following import FollowState
from marketplace.models import HistoryEvent
from submissions.following.submit import submit_commit
from submissions.models import QueueMessage, SubmissionEntry
from tests.git_factory import commit, git, make_repository
from tests.killed_programs import run_killed
from tests.submissions.following.followed import again, begin, kept, make_due, poll
from tests.submissions.front_door import skills
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.models import KVEntry

pytestmark = pytest.mark.django_db(transaction=True)

# Before anything is kept; with the tips kept and nothing submitted; in the transaction of the second submission; with
# both submitted and that not noted.
POINTS: Final = (
    "p0:followed:before:1",
    "p1:followed:after:1",
    "p2:submission:after:2",
    "p3:followed:before:2",
)


def test_each_commit_is_submitted_once_and_a_force_push_told_once_wherever_a_run_is_killed(
    tmp_path: Path, settings: Settings
) -> None:
    policy = {"source_file_roots": [tempfile.gettempdir()]}
    environments = {
        point.split(":")[0]: {"hosts": [f"{number}.test"], "policy": policy} for number, point in enumerate(POINTS)
    }
    settings.VSKILL_ENVIRONMENTS = environments
    path = make_repository(tmp_path / "followed.git", {"README.md": "Nothing yet."})
    names = [get_environment(name) for name in environments]
    (url,) = {begin(env, f"file://{path}") for env in names}
    for env in names:
        poll(env)
    commit(path, skills("one", "two"))
    tree = git(path, "rev-parse", "HEAD^{tree}").decode().strip()
    git(path, "update-ref", "refs/heads/main", git(path, "commit-tree", tree, "-m", "Forced").decode().strip())

    for env in names:
        make_due(env, url)
    run_killed("tests.submissions.following.killed_poll", POINTS, environments, tmp_path / "data")
    # The locks of the dead end by themselves.
    KVEntry.objects.filter(key="lock:poll_followed").update(expires_at=F("expires_at") - timedelta(hours=1))

    for env in names:
        again(env, url)
        entries = SubmissionEntry.objects.filter(namespace=env.name)
        assert sorted(entries.values_list("skill_name", flat=True)) == ["one", "two"], env.name
        assert QueueMessage.objects.filter(environment=env.name).count() == 2, env.name
        assert HistoryEvent.objects.filter(namespace=env.name, action="rewritten").count() == 1, env.name
        known = kept(env, url)
        assert (known.state, known.left, len(known.told)) == (FollowState.REWRITTEN, {}, 1), env.name


async def test_two_that_submit_the_same_commit_at_once_submit_it_once(env: WorkerEnv, tmp_path: Path) -> None:
    path = make_repository(tmp_path / "followed.git", skills("one", "two", "three"))
    url = f"file://{path}".removesuffix(".git")
    done = await asyncio.gather(*(submit_commit(env, url, "HEAD") for _ in range(3)))
    assert sum(one.created for one in done) == 3
    assert await SubmissionEntry.objects.acount() == await QueueMessage.objects.acount() == 3
