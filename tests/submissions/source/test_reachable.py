"""A commit that is named by its id has to be on a branch or tag of the repository."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from django.test import override_settings

from marketplace.models import SkillVersion
from submissions.discovery import discover
from submissions.source import reachable
from submissions.source.errors import CommitNotOnBranch, FetchTimedOut
from submissions.source.git import Snapshot, fetch_snapshot
from submissions.source.git_process import FetchLimits
from submissions.source.urls import SourcePolicy, normalise_repository_url
from submissions.states import State
from tests.git_factory import commit, git, make_repository, skill_md
from tests.submissions.front_door import submit, worked_off
from tests.submissions.source.https_host import CERTIFICATE, https_host
from vskill.environments import get_environment

FILES = {"skills/deploy/SKILL.md": skill_md("deploy")}
PAGE = "https://github.com/owner/impostor/tree/{sha}/skills/deploy"


def impostor(repository: Path) -> str:
    """Leave a commit in the repository that is on no branch or tag, as the host of a fork does, and return its id."""
    tree = git(repository, "rev-parse", "HEAD^{tree}").decode().strip()
    head = git(repository, "rev-parse", "HEAD").decode().strip()
    sha = git(repository, "commit-tree", tree, "-p", head, "-m", "never on a branch").decode().strip()
    # Like a pull request: the host serves it, and it is no branch.
    git(repository, "update-ref", "refs/pull/1/head", sha)
    return sha


def new_folder(folder: Path) -> None:
    folder.mkdir()


def rewriting(repository: Path) -> SourcePolicy:
    return SourcePolicy(rewrites=(("https://github.com/owner/impostor", f"file://{repository}"),))


async def fetch_page(
    repository: Path, sha: str, folder: Path, limits: FetchLimits | None = None, policy: SourcePolicy | None = None
) -> Snapshot:
    new_folder(folder)
    policy = policy or rewriting(repository)
    url = normalise_repository_url(PAGE.format(sha=sha), policy)
    return await fetch_snapshot(url, directory=folder, policy=policy, limits=limits)


@pytest.mark.parametrize("filters", ["true", "false"])
@pytest.mark.parametrize("spelling", [str.lower, str.upper])
async def test_a_commit_of_a_fork_is_refused(tmp_path: Path, filters: str, spelling: type[str]) -> None:
    repository = make_repository(tmp_path / "r.git", FILES)
    git(repository, "config", "uploadpack.allowFilter", filters)
    sha = impostor(repository)
    with pytest.raises(CommitNotOnBranch, match=r"no branch or tag of this repository.*Submit the address of a branch"):
        await fetch_page(repository, spelling(sha), tmp_path / "d")


async def test_a_tip_names_its_branch_and_the_default_one_first(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r.git", FILES)
    main = git(repository, "rev-parse", "HEAD").decode().strip()
    git(repository, "branch", "another", main)
    other = commit(repository, {**FILES, "x": "x"}, branch="feature/one")
    assert (await fetch_page(repository, main, tmp_path / "a")).ref == "HEAD"
    assert (await fetch_page(repository, other, tmp_path / "b")).ref == "refs/heads/feature/one"


@pytest.mark.parametrize("annotated", [True, False])
async def test_a_commit_that_only_a_tag_holds_names_the_tag(tmp_path: Path, annotated: bool) -> None:
    repository = make_repository(tmp_path / "r.git", FILES)
    sha = impostor(repository)
    git(repository, "tag", *(["-a", "-m", "x"] if annotated else []), "v1", sha)
    assert (await fetch_page(repository, sha, tmp_path / "d")).ref == "refs/tags/v1"


@pytest.mark.parametrize("filters", ["true", "false"])
@pytest.mark.parametrize("branch", ["main", "old/release"])
async def test_an_older_commit_is_found_behind_its_branch(tmp_path: Path, filters: str, branch: str) -> None:
    repository = make_repository(tmp_path / "r.git", FILES)
    git(repository, "config", "uploadpack.allowFilter", filters)
    pinned = commit(repository, {**FILES, "v": "1"}, branch=branch)
    for number in range(3):
        commit(repository, {**FILES, "v": f"2.{number}"}, branch=branch)
    commit(repository, {**FILES, "v": "3"}, branch="main")
    snapshot = await fetch_page(repository, pinned, tmp_path / "d")
    assert (snapshot.commit_sha, snapshot.ref) == (pinned, f"refs/heads/{branch}")


async def test_a_commit_that_is_too_far_behind_is_refused_with_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reachable, "DEPTH", 2)
    repository = make_repository(tmp_path / "r.git", FILES)
    shas = [commit(repository, {**FILES, "v": str(number)}) for number in range(4)]
    assert (await fetch_page(repository, shas[-2], tmp_path / "a")).ref == "refs/heads/main"
    with pytest.raises(CommitNotOnBranch, match="as far as 2 commits behind each"):
        await fetch_page(repository, shas[0], tmp_path / "b")


async def test_a_history_beyond_the_limits_is_refused_with_advice(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r.git", FILES)
    pinned = git(repository, "rev-parse", "HEAD").decode().strip()
    for number in range(3):
        commit(repository, {**FILES, "noise": bytes((n * n * 31 + n * number) % 251 for n in range(400_000))})
    commit(repository, FILES)
    with pytest.raises(CommitNotOnBranch, match=r"the history is too large\. Submit the address of a branch or tag"):
        await fetch_page(repository, pinned, tmp_path / "d", FetchLimits(pack_bytes=2000))


async def test_the_time_limit_holds_for_the_history_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = make_repository(tmp_path / "r.git", FILES)
    with pytest.raises((FetchTimedOut, CommitNotOnBranch)):
        await fetch_page(repository, impostor(repository), tmp_path / "d", FetchLimits(seconds=0.05))


async def test_the_same_over_https(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = make_repository(tmp_path / "impostor.git", FILES)
    git(repository, "config", "uploadpack.allowFilter", "true")
    git(repository, "config", "uploadpack.allowReachableSHA1InWant", "true")
    older = git(repository, "rev-parse", "HEAD").decode().strip()
    commit(repository, {**FILES, "x": "x"})
    sha = impostor(repository)
    answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answer)
    with https_host(tmp_path) as host:
        policy = SourcePolicy(
            private_hosts=frozenset({"git.test.example"}),
            ca_file=CERTIFICATE,
            rewrites=(("https://github.com/owner/", f"https://git.test.example:{host.port}/"),),
        )
        assert (await fetch_page(repository, older, tmp_path / "a", policy=policy)).ref == "refs/heads/main"
        with pytest.raises(CommitNotOnBranch):
            await fetch_page(repository, sha, tmp_path / "b", policy=policy)


@pytest.mark.django_db(transaction=True)
async def test_a_version_names_the_ref_that_its_commit_was_found_on(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r.git", FILES)
    older = git(repository, "rev-parse", "HEAD").decode().strip()
    commit(repository, {**FILES, "x": "x"})
    sha = impostor(repository)
    policy = {
        "source_rewrites": [["https://github.com/owner/impostor", f"file://{repository}"]],
        "trusted_owners": ["github.com/owner"],
        "scan_trusted_owners": False,
    }
    with override_settings(VSKILL_ENVIRONMENTS={"default": {"hosts": ["testserver"], "policy": policy}}):
        env = get_environment("default")
        with pytest.raises(CommitNotOnBranch):
            await submit(env, PAGE.format(sha=sha), source="test", actor="stranger")
        assert (await discover(env, "https://github.com/owner/impostor")).ref == "HEAD"
        _discovery, [answer] = await submit(env, PAGE.format(sha=older), source="test", actor="stranger")
        assert answer.submission is not None
        published = await worked_off(env, answer.submission)

    assert (published.state, published.text("sourceRef")) == (State.PUBLISHED, "refs/heads/main")
    version = await SkillVersion.objects.aget()
    assert (version.commit_sha, version.source_ref) == (older, "refs/heads/main")
