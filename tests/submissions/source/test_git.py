"""Fetching: exactly one commit, from the checked address, within the limits, leaving no process behind."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Iterable
from pathlib import Path

import pytest

from submissions.source.blobs import read_blobs, write_files
from submissions.source.errors import (
    CommitNotAvailable,
    FetchFailed,
    FetchTimedOut,
    HostNotAllowed,
    RepositoryEmpty,
    RepositoryMoved,
    RepositoryNotFound,
    RepositoryTooLarge,
    SourceError,
    UnsafeTree,
)
from submissions.source.git import Snapshot, fetch_snapshot
from submissions.source.git_process import FetchLimits
from submissions.source.tree_entries import TreeEntry, below
from submissions.source.urls import SourcePolicy, normalise_repository_url
from tests.git_factory import commit, commit_raw_tree, git, make_repository, skill_md, write_raw_tree
from tests.submissions.source.conftest import Fetch
from tests.submissions.source.https_host import CERTIFICATE, https_host, port_of, silent_host

FILES = {"SKILL.md": skill_md(), "scripts/run.sh": "echo hi\n"}


def new_folder(path: Path) -> Path:
    path.mkdir()
    return path


async def fetch_url(url: str, policy: SourcePolicy, directory: Path, *, limits: FetchLimits | None = None) -> Snapshot:
    new_folder(directory)
    repository = normalise_repository_url(url, policy)
    return await fetch_snapshot(repository, directory=directory, policy=policy, limits=limits)


async def test_a_snapshot_lists_what_was_committed(tmp_path: Path, fetch: Fetch) -> None:
    repository = make_repository(tmp_path / "r.git", FILES, executables={"run": "x"}, symlinks={"l": "/etc/passwd"})

    snapshot = await fetch(repository)

    assert snapshot.commit_sha == git(repository, "rev-parse", "HEAD").decode().strip()
    assert [(e.path, e.mode, e.size) for e in snapshot.entries] == [
        ("SKILL.md", "100644", len(skill_md())),
        ("l", "120000", 11),
        ("run", "100755", 1),
        ("scripts/run.sh", "100644", 8),
    ]


async def test_only_the_newest_commit_is_fetched(tmp_path: Path, fetch: Fetch) -> None:
    repository = make_repository(tmp_path / "r.git", {"old": "old"})
    commit(repository, FILES)

    snapshot = await fetch(repository)

    assert git(snapshot.git_dir, "rev-list", "--count", snapshot.commit_sha).strip() == b"1"
    assert "old" not in {entry.path for entry in snapshot.entries}


async def test_a_pinned_commit_is_fetched_although_the_branch_moved_on(tmp_path: Path, fetch: Fetch) -> None:
    repository = make_repository(tmp_path / "r.git", FILES)
    pinned = git(repository, "rev-parse", "HEAD").decode().strip()
    commit(repository, {"other": "x"})

    snapshot = await fetch(repository, commit_sha=pinned)

    assert snapshot.commit_sha == pinned
    assert "SKILL.md" in {entry.path for entry in snapshot.entries}


@pytest.mark.parametrize("sha", ["0" * 40, "main", "--upload-pack=touch", ""])
async def test_a_commit_that_the_host_cannot_give_is_not_available(tmp_path: Path, fetch: Fetch, sha: str) -> None:
    repository = make_repository(tmp_path / "r.git", FILES)
    with pytest.raises(CommitNotAvailable):
        await fetch(repository, commit_sha=sha)


async def test_a_ref_in_the_address_is_what_is_fetched(tmp_path: Path, policy: SourcePolicy) -> None:
    repository = make_repository(tmp_path / "r.git", FILES)
    other = commit(repository, {"other": "x"}, branch="other")
    rewriting = SourcePolicy(rewrites=(("https://github.com/acme/skills", f"file://{repository}"),))

    snapshot = await fetch_url("https://github.com/acme/skills/tree/other", rewriting, tmp_path / "d")

    assert snapshot.commit_sha == other
    with pytest.raises(RepositoryEmpty, match="no such branch"):
        await fetch_url("https://github.com/acme/skills/tree/absent", rewriting, tmp_path / "e")


async def test_an_empty_repository_is_said_to_be_empty(tmp_path: Path, fetch: Fetch) -> None:
    with pytest.raises(RepositoryEmpty, match="nothing was committed"):
        await fetch(make_repository(tmp_path / "r.git"))


@pytest.mark.parametrize("content", [None, "a folder", "a file"])
async def test_a_missing_local_repository_is_not_found(tmp_path: Path, fetch: Fetch, content: str | None) -> None:
    if content == "a folder":
        (tmp_path / "r").mkdir()
    elif content == "a file":
        (tmp_path / "r").write_text("x")
    with pytest.raises(RepositoryNotFound):
        await fetch(tmp_path / "r")


async def test_a_rewrite_does_not_let_a_name_climb_out_of_its_mirror(tmp_path: Path) -> None:
    (tmp_path / "mirror/acme").mkdir(parents=True)
    make_repository(tmp_path / "secret.git", FILES)
    (tmp_path / "mirror/acme/skills.git").symlink_to(tmp_path / "secret.git")
    policy = SourcePolicy(rewrites=(("https://github.com/", f"file://{tmp_path}/mirror/"),))
    with pytest.raises(RepositoryNotFound):
        await fetch_url("acme/skills", policy, tmp_path / "d")


async def test_configuration_and_hooks_of_others_take_no_part(
    tmp_path: Path, fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = tmp_path / "witness"
    home = tmp_path / "home"
    (home / "template/hooks").mkdir(parents=True)
    hook = home / "template/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {witness}\n")
    hook.chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[init]\n\ttemplateDir = {home}/template\n[core]\n\thooksPath = {home}/template/hooks\n"
        f'[url "file:///nowhere/"]\n\tinsteadOf = file://\n[uploadpack]\n\tpackObjectsHook = "touch {witness};"\n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "url.file:///nowhere/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "file://")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    repository = make_repository(tmp_path / "r.git", FILES)

    snapshot = await fetch(repository)

    assert len(snapshot.entries) == 2
    assert not witness.exists()
    assert not list((snapshot.git_dir / "hooks").glob("*"))


async def test_submodules_are_listed_and_never_fetched(tmp_path: Path, fetch: Fetch) -> None:
    inner = make_repository(tmp_path / "inner.git", {"x": "x"})
    sha = git(inner, "rev-parse", "HEAD").decode().strip()
    modules = f'[submodule "sub"]\n\tpath = sub\n\turl = file://{inner}\n'
    repository = make_repository(tmp_path / "r.git", {**FILES, ".gitmodules": modules}, submodules={"sub": sha})

    snapshot = await fetch(repository)

    assert {e.path: (e.mode, e.size) for e in snapshot.entries}["sub"] == ("160000", None)
    assert not (snapshot.git_dir / "modules").exists()


async def test_more_files_than_allowed_is_too_large(tmp_path: Path, fetch: Fetch) -> None:
    repository = make_repository(tmp_path / "r.git", {f"f{n}": "x" for n in range(12)})
    with pytest.raises(RepositoryTooLarge, match="more than 11 files"):
        await fetch(repository, limits=FetchLimits(files=11))
    assert len((await fetch(repository, limits=FetchLimits(files=12))).entries) == 12


async def test_a_pack_over_the_limit_never_lands_on_the_disk(tmp_path: Path, fetch: Fetch) -> None:
    noise = random.Random(1).randbytes(1_000_000)
    repository = make_repository(tmp_path / "r.git", {"noise": noise})
    with pytest.raises(RepositoryTooLarge):
        await fetch(repository, limits=FetchLimits(pack_bytes=200_000))
    assert 0 < max(sizes_below(tmp_path, "fetched-*")) <= 200_000


def sizes_below(folder: Path, pattern: str) -> list[int]:
    return [path.stat().st_size for path in folder.glob(f"{pattern}/**/*") if path.is_file()]


async def test_a_small_pack_of_huge_files_is_too_large(tmp_path: Path, fetch: Fetch) -> None:
    repository = make_repository(tmp_path / "r.git", {"zeros": bytes(3_000_000)})
    with pytest.raises(RepositoryTooLarge, match="MiB together"):
        await fetch(repository, limits=FetchLimits(tree_bytes=2_000_000))


async def test_a_tree_that_lists_itself_billions_of_times_is_too_large(tmp_path: Path, fetch: Fetch) -> None:
    repository = make_repository(tmp_path / "r.git")
    tree = write_raw_tree(repository, {b"f%d" % n: b"x" for n in range(10)})
    for _ in range(10):
        tree = write_raw_tree(repository, {b"d%d" % n: tree for n in range(10)})
    commit_raw_tree(repository, {b"d": tree})
    with pytest.raises(RepositoryTooLarge, match="files"):
        await fetch(repository)


async def test_a_host_that_never_answers_is_left_at_the_time_limit(tmp_path: Path) -> None:
    with silent_host() as listener:
        policy = SourcePolicy(private_hosts=frozenset({"127.0.0.1"}))
        with pytest.raises(FetchTimedOut, match="longer than 1 seconds") as caught:
            await fetch_url(
                f"https://127.0.0.1:{port_of(listener)}/a/b", policy, tmp_path / "d", limits=FetchLimits(seconds=1)
            )
        assert caught.value.transient
        assert await hung_up(listener)


async def test_a_cancelled_fetch_leaves_no_git_behind(tmp_path: Path) -> None:
    with silent_host() as listener:
        policy = SourcePolicy(private_hosts=frozenset({"127.0.0.1"}))
        url = f"https://127.0.0.1:{port_of(listener)}/a/b"
        fetching = asyncio.create_task(fetch_url(url, policy, tmp_path / "d"))
        connection, _ = await asyncio.to_thread(listener.accept)
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching
        with connection:
            assert await asyncio.to_thread(drained, connection)


async def hung_up(listener: socket.socket) -> bool:
    connection, _ = await asyncio.to_thread(listener.accept)
    with connection:
        return await asyncio.to_thread(drained, connection)


def drained(connection: socket.socket) -> bool:
    """Read until no process holds the other end of the connection."""
    connection.settimeout(20)
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


class TestOverHttps:
    """The same over a real TLS connection, to a name that only our own check can resolve."""

    @pytest.fixture
    def policy(self) -> SourcePolicy:
        """Trust the certificate of the test host and allow its name to be private."""
        return SourcePolicy(private_hosts=frozenset({"git.test.example"}), ca_file=CERTIFICATE)

    @pytest.fixture(autouse=True)
    def _names(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Resolve the names of the test in this process; git cannot resolve them."""
        answers = {
            "git.test.example": ["127.0.0.1"],
            "rebound.example": ["10.0.0.1"],
            "mixed.example": ["8.8.8.8", "127.0.0.1"],
        }

        def getaddrinfo(host: str, port: int, *_: object, **__: object) -> list[object]:
            if host not in answers:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in answers[host]]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    async def test_git_connects_to_the_address_that_was_checked(self, tmp_path: Path, policy: SourcePolicy) -> None:
        (tmp_path / "a").mkdir()
        make_repository(tmp_path / "a/b", FILES)
        with https_host(tmp_path) as host:
            snapshot = await fetch_url(f"https://git.test.example:{host.port}/a/b", policy, tmp_path / "d")
        assert [entry.path for entry in snapshot.entries] == sorted(FILES)

    async def test_the_spelling_with_git_at_the_end_is_tried_too(self, tmp_path: Path, policy: SourcePolicy) -> None:
        (tmp_path / "a").mkdir()
        make_repository(tmp_path / "a/b.git", FILES)
        with https_host(tmp_path) as host:
            snapshot = await fetch_url(f"https://git.test.example:{host.port}/a/b", policy, tmp_path / "d")
        assert len(snapshot.entries) == 2

    @pytest.mark.parametrize(
        ("path", "error", "words"),
        [
            ("/a/absent", RepositoryNotFound, "or it asks for sign-in"),
            ("/private/b", RepositoryNotFound, "or it asks for sign-in"),
            ("/moved/b", RepositoryMoved, "new address"),
        ],
    )
    async def test_refusals_of_the_host_are_told_apart(
        self, tmp_path: Path, policy: SourcePolicy, path: str, error: type[SourceError], words: str
    ) -> None:
        (tmp_path / "a").mkdir()
        make_repository(tmp_path / "a/b.git", FILES)
        with https_host(tmp_path) as host:
            with pytest.raises(error, match=words):
                await fetch_url(f"https://git.test.example:{host.port}{path}", policy, tmp_path / "d")
            assert not any(request.startswith("/a/b") for request in host.requests)

    async def test_a_certificate_that_nobody_vouches_for_is_refused(self, tmp_path: Path) -> None:
        stranger = SourcePolicy(private_hosts=frozenset({"git.test.example"}))
        with https_host(tmp_path) as host, pytest.raises(FetchFailed, match="certificate"):
            await fetch_url(f"https://git.test.example:{host.port}/a/b", stranger, tmp_path / "d")

    @pytest.mark.parametrize("name", ["rebound.example", "mixed.example"])
    async def test_a_public_name_with_a_private_address_is_never_contacted(self, tmp_path: Path, name: str) -> None:
        with https_host(tmp_path) as host:
            with pytest.raises(HostNotAllowed, match="not on the public internet"):
                await fetch_url(f"https://{name}:{host.port}/a/b", SourcePolicy(), tmp_path / "d")
            assert host.requests == []

    async def test_an_unknown_host_is_said_to_be_unknown(self, tmp_path: Path) -> None:
        with pytest.raises(FetchFailed, match=r"nowhere\.example was not found by name") as caught:
            await fetch_url("https://nowhere.example/a/b", SourcePolicy(), tmp_path / "d")
        assert caught.value.transient


async def test_blobs_are_read_in_order_and_byte_for_byte(tmp_path: Path, fetch: Fetch) -> None:
    files = {f"f{n:03}": bytes([n % 256]) * (n * 1000) for n in range(150)}
    attributes = "* text eol=crlf filter=evil ident\n"
    repository = make_repository(tmp_path / "r.git", {**files, ".gitattributes": attributes, "lf": "a\nb $Id$\n"})
    snapshot = await fetch(repository)

    read = [(entry.path, content) async for entry, content in read_blobs(snapshot, snapshot.entries)]

    assert [path for path, _ in read] == [entry.path for entry in snapshot.entries]
    assert dict(read) == {**files, ".gitattributes": attributes.encode(), "lf": b"a\nb $Id$\n"}


def by_path(entries: Iterable[TreeEntry]) -> dict[str, TreeEntry]:
    return {entry.path: entry for entry in entries}


async def test_one_file_can_be_written_to_two_paths(tmp_path: Path, fetch: Fetch) -> None:
    snapshot = await fetch(make_repository(tmp_path / "r.git", {"a": "x"}))
    destination = tmp_path / "out"
    destination.mkdir()
    [entry] = snapshot.entries
    await write_files(snapshot, {"a": entry, "b/c": entry}, destination)
    assert (destination / "a").read_text() == (destination / "b/c").read_text() == "x"


async def test_a_written_tree_has_the_bytes_and_the_executable_bits(tmp_path: Path, fetch: Fetch) -> None:
    repository = make_repository(
        tmp_path / "r.git", {"s/SKILL.md": "x", "s/a/b": "y", "other": "z"}, executables={"s/run": "#!/bin/sh\n"}
    )
    destination = tmp_path / "out"
    destination.mkdir()

    snapshot = await fetch(repository)
    await write_files(snapshot, by_path(below(snapshot.entries, "s")), destination)

    assert {
        str(path.relative_to(destination)): (path.read_text(), oct(path.stat().st_mode & 0o777))
        for path in destination.rglob("*")
        if path.is_file()
    } == {"SKILL.md": ("x", "0o644"), "a/b": ("y", "0o644"), "run": ("#!/bin/sh\n", "0o755")}


async def test_links_submodules_and_odd_names_are_never_written(tmp_path: Path, fetch: Fetch) -> None:
    hostile = make_repository(tmp_path / "h.git")
    commit_raw_tree(hostile, {b"ok": b"x", b"../../escaped": b"x"})
    repositories = [
        hostile,
        make_repository(tmp_path / "l.git", {"ok": "x"}, symlinks={"l": "/etc/passwd"}),
        make_repository(tmp_path / "s.git", {"ok": "x"}, submodules={"s": "1" * 40}),
        make_repository(tmp_path / "c.git", {"ok": "x", "OK": "y"}),
    ]
    for number, repository in enumerate(repositories):
        destination = tmp_path / f"out-{number}"
        destination.mkdir()
        snapshot = await fetch(repository)
        with pytest.raises(UnsafeTree):
            await write_files(snapshot, by_path(snapshot.entries), destination)
        assert list(destination.iterdir()) == []
    assert not (tmp_path / "escaped").exists()


async def test_too_much_is_refused_before_anything_is_read(tmp_path: Path, fetch: Fetch) -> None:
    snapshot = await fetch(make_repository(tmp_path / "r.git", {"a": "12345", "b": "12345"}))
    destination = tmp_path / "out"
    destination.mkdir()
    with pytest.raises(RepositoryTooLarge):
        await write_files(snapshot, by_path(snapshot.entries), destination, max_files=1)
    with pytest.raises(RepositoryTooLarge):
        await write_files(snapshot, by_path(snapshot.entries), destination, max_bytes=9)
    assert list(destination.iterdir()) == []
