"""Repositories that are looked at: what is kept of those that answer, are old, are gone, or fail for a moment."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connections
from django.test import Client

from marketplace.models import HistoryEvent
from marketplace.repo_health import Health, RepoHealth, health_key, read_health_sync
from submissions.repo_health import check as check_module
from submissions.repo_health import look
from submissions.repo_health.check import CheckReport, check_repositories
from submissions.repo_health.look import Seen
from submissions.repo_health.store import RECHECK, RECHECK_FAILURE, STALE_AFTER, next_health
from tests.git_factory import git, make_repository, skill_md
from tests.marketplace.factories import publish_example
from tests.submissions.commands.run import run
from tests.submissions.source.https_host import CERTIFICATE, HttpsHost, https_host
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now, isoformat
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.processes.run_lock import AlreadyRunning, run_lock
from vskill.worker_context import WorkerEnvMissing, run_with_worker_env

pytestmark = pytest.mark.django_db(transaction=True)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
URL = "https://git.test.example/a/b"


def check(env: WorkerEnv, **how: Any) -> CheckReport:
    """Run one check without pauses, and return its report."""

    async def main() -> CheckReport:
        given = {"limit": 10, "seconds": 60.0, "pause": 0.0, **how}
        return await run_with_worker_env(env, check_repositories, **given)

    return async_to_sync(main)()


def kept(env: WorkerEnv, url: str) -> RepoHealth:
    """Return what is kept of the repository at ``url``."""
    health = read_health_sync(env, url)
    assert health is not None
    return health


def make_due(env: WorkerEnv, url: str) -> None:
    """Let the repository at ``url`` be due for the next check."""
    namespace = KVNamespace(KVEntry, env)
    value = namespace.get_sync(health_key(url)).require()
    namespace.put_sync(health_key(url), {**value, "dueAt": "2020-01-01T00:00:00.000Z"})


def local(tmp_path: Path, env: WorkerEnv, *, name: str = "hello-skill", committed: int | None = None) -> str:
    """Publish a skill of a new repository on this machine and return its URL; the commit was made at ``committed``."""
    path = make_repository(tmp_path / f"{name}.git", {f"skills/{name}/SKILL.md": skill_md(name)})
    if committed is not None:
        raw = git(path, "cat-file", "commit", "main").replace(b" 1700000000 ", b" %d " % committed)
        sha = git(path, "hash-object", "-t", "commit", "-w", "--stdin", stdin=raw).decode().strip()
        git(path, "update-ref", "refs/heads/main", sha)
    url = f"file://{path}".removesuffix(".git")
    publish_example(env, name=name, repo_url=url, skill_path=f"skills/{name}", source_ref="HEAD")
    return url


@pytest.fixture
def https_env(env: WorkerEnv, monkeypatch: pytest.MonkeyPatch) -> WorkerEnv:
    """Return the environment with a policy that allows the git host of the tests, whose name leads to loopback."""
    real = socket.getaddrinfo

    def resolve(host: Any, *arguments: Any, **options: Any) -> Any:
        if host == "down.test.example":
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return real("127.0.0.1" if host == "git.test.example" else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    hosts = ("git.test.example", "down.test.example")
    policy = replace(env.policy, source_private_hosts=hosts, source_ca_file=str(CERTIFICATE))
    return replace(env, policy=policy)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HttpsHost]:
    """Serve the repository ``a/b`` over https."""
    (tmp_path / "a").mkdir()
    make_repository(tmp_path / "a/b.git", {"skills/hello-skill/SKILL.md": skill_md()})
    with https_host(tmp_path) as served:
        yield served


def served(env: WorkerEnv, host: HttpsHost, path: str = "/a/b", name: str = "hello-skill") -> str:
    """Publish a skill from the repository at ``path`` of the host and return its URL."""
    url = f"https://git.test.example:{host.port}{path}"
    publish_example(env, name=name, repo_url=url, skill_path=f"skills/{name}")
    return url


def test_a_repository_that_answers_is_online_until_its_commit_is_a_year_old(env: WorkerEnv, tmp_path: Path) -> None:
    young = local(tmp_path, env, name="young", committed=int(time.time()) - 86_400)
    old = local(tmp_path, env, name="old")
    report = check(env)
    assert report.counts() == {"ONLINE": 1, "STALE": 1, "OFFLINE": 0, "UNKNOWN": 0}
    new, aged = (kept(env, url) for url in (young, old))
    assert (new.status, aged.status) == (Health.ONLINE, Health.STALE)
    assert aged.last_commit_at == datetime.fromtimestamp(1_700_000_000, UTC)
    assert aged.due_at - aged.checked_at == RECHECK
    assert check(env).checked == []


@pytest.mark.parametrize(
    ("age", "status"),
    [
        (STALE_AFTER - timedelta(seconds=1), Health.ONLINE),
        (STALE_AFTER, Health.STALE),
        (timedelta(days=-400), Health.ONLINE),
    ],
)
def test_exactly_a_year_is_stale_and_a_date_in_the_future_is_now(age: timedelta, status: Health) -> None:
    health = next_health(URL, None, Seen(Health.ONLINE, committed_at=NOW - age), NOW)
    assert health.status is status
    assert health.last_commit_at is not None
    assert health.last_commit_at <= NOW


@pytest.mark.parametrize("date", [b"99999999999999999999", b"nonsense", b"999999999999"])
def test_a_commit_that_lies_about_its_time_is_no_failure(env: WorkerEnv, tmp_path: Path, date: bytes) -> None:
    url = local(tmp_path, env)
    path = Path(url.removeprefix("file://") + ".git")
    raw = git(path, "cat-file", "commit", "main").replace(b" 1700000000 ", b" %s " % date)
    sha = git(path, "hash-object", "--literally", "-t", "commit", "-w", "--stdin", stdin=raw).decode().strip()
    git(path, "update-ref", "--no-deref", "refs/heads/main", sha)
    check(env)
    health = kept(env, url)
    # Git refuses some such commits itself, which is no reason to call a repository gone.
    assert health.status in (Health.ONLINE, Health.UNKNOWN)


@pytest.mark.parametrize("path", ["/a/gone", "/private/b"])
def test_a_repository_that_its_host_does_not_show_is_offline(https_env: WorkerEnv, host: HttpsHost, path: str) -> None:
    url = served(https_env, host, path)
    check(https_env)
    health = kept(https_env, url)
    assert (health.status, health.failures) == (Health.OFFLINE, 1)
    assert health.due_at - health.checked_at == RECHECK_FAILURE


def _answers(status: int, words: bytes = b"") -> Any:
    def answer(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", "text/plain")
        handler.send_header("Content-Length", str(len(words)))
        handler.end_headers()
        handler.wfile.write(words)

    return answer


def _says_nothing(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
    handler.rfile.read(1)


@pytest.mark.parametrize(
    ("status", "words"),
    [(500, b""), (502, b""), (503, b"repository not found"), (429, b"not found"), (403, b""), (302, b"")],
)
def test_a_fault_that_passes_is_never_offline(https_env: WorkerEnv, host: HttpsHost, status: int, words: bytes) -> None:
    url = served(https_env, host)
    check(https_env)
    before = kept(https_env, url)
    assert before.status is Health.STALE
    host.answers["/a/b"] = _answers(status, words)
    make_due(https_env, url)
    check(https_env)
    health = kept(https_env, url)
    assert (health.status, health.seen_at) == (Health.UNKNOWN, before.seen_at)
    assert health.last_commit_at == before.last_commit_at
    assert health.reason
    del host.answers["/a/b"]
    make_due(https_env, url)
    check(https_env)
    again = kept(https_env, url)
    assert (again.status, again.failures, again.reason) == (Health.STALE, 0, "")


def test_one_spelling_that_is_forbidden_outweighs_one_that_is_not_there(https_env: WorkerEnv, host: HttpsHost) -> None:
    url = served(https_env, host, "/c/d")
    host.answers["/c/d.git"] = _answers(403)
    check(https_env)
    health = kept(https_env, url)
    assert health.status is Health.UNKNOWN


def test_a_name_that_does_not_resolve_and_a_host_that_refuses_are_unknown(https_env: WorkerEnv) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    urls = [f"https://git.test.example:{port}/a/b", "https://down.test.example/a/b"]
    for number, url in enumerate(urls):
        publish_example(https_env, name=f"skill-{number}", repo_url=url)
    check(https_env)
    assert [kept(https_env, url).status for url in urls] == [Health.UNKNOWN] * 2


def test_a_host_that_never_answers_is_unknown(
    https_env: WorkerEnv, host: HttpsHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = served(https_env, host)
    monkeypatch.setattr(look, "LOOK_SECONDS", 0.2)
    host.answers["/a/b"] = _says_nothing
    check(https_env)
    health = kept(https_env, url)
    assert (health.status, "did not answer" in health.reason) == (Health.UNKNOWN, True)


def test_a_host_that_fails_is_left_alone_for_the_rest_of_a_run(https_env: WorkerEnv, host: HttpsHost) -> None:
    for number in range(5):
        served(https_env, host, f"/broken/{number}", name=f"skill-{number}")
    host.answers["/broken/"] = _answers(503)
    report = check(https_env)
    assert (len(report.checked), report.left) == (check_module.MOST_FAILURES, 2)


def test_since_stays_while_the_status_does_and_waits_grow_to_a_day() -> None:
    gone = Seen(Health.OFFLINE, "gone")
    health: RepoHealth | None = None
    waits = []
    for day in range(12):
        health = next_health(URL, health, gone, NOW + timedelta(days=day))
        waits.append(health.due_at - health.checked_at)
    assert health is not None
    assert (health.since, health.failures) == (NOW, 12)
    assert waits[:3] == [RECHECK_FAILURE, RECHECK_FAILURE * 2, RECHECK_FAILURE * 4]
    assert waits[-1] == RECHECK
    back = next_health(URL, health, Seen(Health.ONLINE, committed_at=NOW), NOW + timedelta(days=13))
    assert (back.since, back.failures) == (NOW + timedelta(days=13), 0)


def test_each_repository_gets_its_turn_and_a_run_is_bounded(env: WorkerEnv, tmp_path: Path) -> None:
    urls = {local(tmp_path, env, name=f"skill-{number}") for number in range(3)}
    seen = [one.repo_url for _run in range(3) for one in check(env, limit=1).checked]
    assert set(seen) == urls
    for url in urls:
        make_due(env, url)
    assert [one.repo_url for _run in range(3) for one in check(env, limit=1).checked] == seen
    for url in urls:
        make_due(env, url)
    assert check(env, seconds=0.0).left == 3


def test_a_skill_whose_folder_is_gone_is_marked_on_the_way(env: WorkerEnv, tmp_path: Path) -> None:
    url = local(tmp_path, env)
    publish_example(env, name="left", repo_url=url, skill_path="skills/left", source_ref="HEAD")
    check(env)
    assert [event.subject for event in HistoryEvent.objects.filter(action="source gone")] == ["skill:left"]


def test_the_environment_is_the_current_one_and_another_has_its_own_health(env: WorkerEnv, tmp_path: Path) -> None:
    url = local(tmp_path, env)
    with pytest.raises(WorkerEnvMissing):
        async_to_sync(check_repositories)(limit=1, seconds=1.0)
    check(env)
    assert read_health_sync(replace(env, name="another"), url) is None


def test_two_machines_do_not_check_at_once(env: WorkerEnv, tmp_path: Path) -> None:
    local(tmp_path, env)

    async def main() -> None:
        async with run_lock(env, check_module.WORK):
            await run_with_worker_env(env, check_repositories, limit=1, seconds=1.0)

    with pytest.raises(AlreadyRunning):
        async_to_sync(main)()


def test_what_another_wrote_meanwhile_stays(env: WorkerEnv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = local(tmp_path, env)
    real = look.look_at
    newer = next_health(url, None, Seen(Health.OFFLINE, "by another"), database_now(env.database))

    async def slow(env: WorkerEnv, url: str) -> Seen:
        await KVNamespace(KVEntry, env).put(health_key(url), newer.to_value())
        return await real(env, url)

    monkeypatch.setattr(check_module, "look_at", slow)
    assert check(env).lost == 1
    seen_now = kept(env, url)
    assert seen_now.reason == "by another"


def test_a_damaged_entry_is_replaced(env: WorkerEnv, tmp_path: Path) -> None:
    url = local(tmp_path, env)
    KVNamespace(KVEntry, env).put_sync(health_key(url), {"status": "BROKEN"})
    assert read_health_sync(env, url) is None
    with connections[env.database].cursor() as cursor:
        cursor.execute("UPDATE kv_kventry SET value = '{cut' WHERE key = %s", [health_key(url)])
    check(env)
    seen_now = kept(env, url)
    assert seen_now.status is Health.STALE


def test_page_and_api_show_it(env: WorkerEnv, client: Client, tmp_path: Path) -> None:
    url = local(tmp_path, env)
    assert "nobody has looked yet" in client.get("/skills/hello-skill").content.decode()
    assert client.get("/api/v1/skills/hello-skill/repo-health").json()["status"] is None
    check(env)
    health = kept(env, url)
    page = client.get("/skills/hello-skill").content.decode()
    assert "No commit for a year" in page
    answer = client.get("/api/v1/skills/hello-skill/repo-health").json()
    assert answer["since"] == isoformat(health.since)
    assert (answer["status"], answer["lastCommitAt"]) == ("STALE", "2023-11-14T22:13:20.000Z")
    assert {"since", "checkedAt", "lastSeenAt", "reason", "repoUrl", "slug"} <= set(answer)


def test_the_command_says_what_it_did(env: WorkerEnv, tmp_path: Path) -> None:
    url = local(tmp_path, env)
    dry = run("check_repositories", "--dry-run", "--json").document
    assert (dry["due"], dry["dryRun"], read_health_sync(env, url)) == ([url], True, None)
    done = run("check_repositories", "--json").document
    assert (done["counts"]["STALE"], done["checked"][0]["repoUrl"]) == (1, url)
    assert run("check_repositories", "-v", "0").out == ""
    assert "nothing is due" in run("check_repositories").out
