"""However many repositories are followed, they cost less than a request a second, and a host is asked with care."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction

from marketplace.following import FollowState, follow_key, follow_namespace
from submissions.following.look import DEFAULT_FOR
from submissions.following.pace import (
    LONGEST_RUN,
    LONGEST_WAIT,
    RECHECK_FAILURE,
    REQUESTS_OF_A_LOOK,
    after_failures,
    allowance,
    interval,
    spread,
)
from submissions.following.poll import WORK
from submissions.following.store import ask_for_look, write_seen
from tests.git_factory import commit, git, make_repository, skill_md
from tests.submissions.following.followed import again, begin, kept, make_due, poll
from tests.submissions.source.https_host import CERTIFICATE, HttpsHost, https_host
from tests.submissions.source.lfs.lfs_host import send
from vskill.environments import WorkerEnv
from vskill.processes.last_runs import last_run

MANY = 10_000
ADVERTISED = {"Content-Type": "application/x-git-upload-pack-advertisement"}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HttpsHost]:
    """Serve repositories below ``tmp_path`` over https."""
    with https_host(tmp_path) as served:
        yield served


@pytest.fixture
def inside(env: WorkerEnv, monkeypatch: pytest.MonkeyPatch) -> WorkerEnv:
    """Return the environment with a policy that allows the git host of the tests, whose name leads to loopback."""
    real = socket.getaddrinfo

    def resolve(name: Any, *arguments: Any, **options: Any) -> Any:
        return real("127.0.0.1" if name == "git.test.example" else name, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    policy = replace(env.policy, source_private_hosts=("git.test.example",), source_ca_file=str(CERTIFICATE))
    return replace(env, policy=policy)


def test_ten_thousand_repositories_cost_less_than_a_request_a_second() -> None:
    usual = interval(MANY).total_seconds()
    assert MANY * REQUESTS_OF_A_LOOK / usual < 0.75
    # Also where the shortest waits of all of them coincide, after a day off, and however often the command runs.
    assert allowance(None) == allowance(timedelta(days=1)) == 24
    assert allowance(None) * REQUESTS_OF_A_LOOK / LONGEST_RUN.total_seconds() <= 0.8
    for every in (15, 30, 60):
        assert allowance(timedelta(seconds=every)) * REQUESTS_OF_A_LOOK / every <= 0.8
        # They are looked at no more slowly than they are due.
        assert allowance(timedelta(seconds=every)) / every * usual >= MANY
    # Few are looked at as often as the setting says.
    assert interval(1) == interval(200) == timedelta(seconds=settings.FOLLOW_INTERVAL)


def test_looks_are_spread_and_failures_wait_longer_up_to_a_day() -> None:
    waits = [spread(timedelta(seconds=1000)).total_seconds() for _ in range(200)]
    assert 900 <= min(waits) < 950 < 1050 < max(waits) <= 1100
    usual = timedelta(minutes=1)
    assert [after_failures(count, usual) for count in (1, 2, 3)] == [RECHECK_FAILURE * 2**power for power in range(3)]
    assert after_failures(50, usual) == LONGEST_WAIT
    assert after_failures(1, timedelta(days=2)) == timedelta(days=2)


@pytest.mark.django_db(transaction=True)
def test_a_look_costs_two_requests_and_a_host_that_fails_is_left_alone(
    inside: WorkerEnv, host: HttpsHost, tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    paths = [make_repository(tmp_path / f"a/{name}.git", {"SKILL.md": skill_md("one")}) for name in "bcde"]
    base = f"https://git.test.example:{host.port}"
    urls = [begin(inside, f"{base}/a/{path.name}") for path in paths]
    first = poll(inside)
    assert (first.looked, first.failed) == (4, 0)
    before = {url: kept(inside, url) for url in urls}
    for url in urls:
        make_due(inside, url)
    host.requests.clear()
    assert poll(inside).looked == 4
    assert len(host.requests) == 4 * REQUESTS_OF_A_LOOK
    # Nothing is asked for before its time.
    assert poll(inside).looked == 0
    assert last_run(inside, WORK).said["looked"] == 0

    def away(handler: Any, _body: bytes) -> None:
        send(handler, 503, b"busy")

    host.answers["/a/"] = away
    for url in urls:
        make_due(inside, url)
    report = poll(inside)
    assert (report.looked, report.failed, report.left) == (3, 3, 1)
    failed = [kept(inside, url) for url in urls if kept(inside, url).failures]
    assert {one.state for one in failed} == {FollowState.UNREACHABLE}
    assert all(one.tips == before[one.repo_url].tips for one in failed)
    wait = failed[0].due_at - failed[0].looked_at  # type: ignore[operator]  # both were just written
    assert wait >= interval(4) * 0.9
    host.answers.clear()
    commit(paths[0], {"SKILL.md": skill_md("one", "Says more.")})
    assert again(inside, urls[0]).failed == 0
    assert kept(inside, urls[0]).state is FollowState.FOLLOWING


@pytest.mark.django_db(transaction=True)
def test_a_look_at_a_default_branch_asks_for_no_pull_requests_and_sees_when_another_is_the_default(
    inside: WorkerEnv, host: HttpsHost, tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    path = make_repository(tmp_path / "a/b.git", {"README.md": "nothing yet"})
    sha = git(path, "rev-parse", "HEAD").decode().strip()
    pulls = sorted(f"{sha} refs/pull/{number}/head\n" for number in range(2_000))
    (path / "packed-refs").write_text("# pack-refs with: peeled fully-peeled sorted \n" + "".join(pulls))
    url = begin(inside, f"https://git.test.example:{host.port}/a/b")
    poll(inside)
    assert kept(inside, url).default_ref == "refs/heads/main"
    assert host.git_bytes > 100_000

    def looked() -> tuple[int, int]:
        host.requests.clear()
        host.git_bytes = 0
        again(inside, url)
        return len(host.requests), host.git_bytes

    requests, size = looked()
    assert (requests, kept(inside, url).failures) == (REQUESTS_OF_A_LOOK, 0)
    assert size < 2_000
    before = kept(inside, url).tips
    new = commit(path, {"README.md": "more"})
    looked()
    assert before != kept(inside, url).tips == {"HEAD": new}

    def default_is(name: str) -> None:
        git(path, "symbolic-ref", "HEAD", f"refs/heads/{name}")

    # Another branch becomes the default one, and the former stays: seen after a day, or when a webhook names it.
    other = commit(path, {"README.md": "another way"}, branch="next")
    default_is("next")
    looked()
    assert kept(inside, url).tips == {"HEAD": new}
    one = kept(inside, url)
    assert one.default_at is not None
    outcome = follow_namespace(inside).get_sync(follow_key(url))
    assert write_seen(inside, outcome, replace(one, default_at=one.default_at - DEFAULT_FOR)) is not None
    looked()
    assert kept(inside, url).tips == {"HEAD": other}
    default_is("main")
    with transaction.atomic():
        ask_for_look(inside, url, lambda _one, now: now)
    looked()
    assert (kept(inside, url).tips, kept(inside, url).default_ref) == ({"HEAD": new}, "refs/heads/main")
    # Or at once, where the former is gone.
    default_is("next")
    git(path, "branch", "-D", "main")
    looked()
    assert (kept(inside, url).tips, kept(inside, url).default_ref) == ({"HEAD": other}, "refs/heads/next")


@pytest.mark.django_db(transaction=True)
def test_a_host_that_sends_a_million_refs_or_nonsense_is_a_failure_within_bounds(
    inside: WorkerEnv, host: HttpsHost, tmp_path: Path
) -> None:
    url = begin(inside, f"https://git.test.example:{host.port}/a/b", tags="*")
    lines = b"".join(b"%040x refs/tags/v%07d\n" % (number, number) for number in range(40_000))
    pkts = b"".join(b"%04x%s" % (len(line) + 4, line) for line in lines.splitlines(keepends=True))
    begun = b"001e# service=git-upload-pack\n0000"

    def flood(handler: Any, _body: bytes) -> None:
        send(handler, 200, begun + pkts + b"0000", ADVERTISED)

    host.answers["/a/"] = flood
    poll(inside)
    assert (kept(inside, url).state, "more branches and tags" in kept(inside, url).reason) == (
        FollowState.UNREACHABLE,
        True,
    )

    def few(handler: Any, _body: bytes) -> None:
        some = b"".join(b"%04x%s" % (len(line) + 4, line) for line in lines.splitlines(keepends=True)[:1001])
        send(handler, 200, begun + some + b"0000", ADVERTISED)

    host.answers["/a/"] = few
    again(inside, url)
    assert "More than 1,000 tags fit '*'" in kept(inside, url).reason
    host.answers["/a/"] = lambda handler, _body: send(handler, 200, b"<html>\nSign in\n</html>\n")
    again(inside, url)
    known = kept(inside, url)
    assert (known.state, known.tips, known.failures) == (FollowState.UNREACHABLE, {}, 3)


@pytest.mark.django_db(transaction=True)
def test_what_somebody_else_changes_during_a_look_is_not_overwritten(env: WorkerEnv, tmp_path: Path) -> None:
    path = make_repository(tmp_path / "followed.git", {"SKILL.md": skill_md("one")})
    url = begin(env, f"file://{path}")
    outcome = follow_namespace(env).get_sync(follow_key(url))
    begin(env, f"file://{path}", tags="v*")
    assert write_seen(env, outcome, replace(kept(env, url), tags="", reason="old")) is None
    assert (kept(env, url).tags, kept(env, url).reason) == ("v*", "")
