"""One fetch of a commit serves all who name it, and never more than that."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from submissions.sandbox.child_processes import ChildResult, run_child
from submissions.source import git_process, snapshots
from submissions.source.errors import FetchFailed, FetchTimedOut, RepositoryNotFound, RepositoryTooLarge, SourceError
from submissions.source.fetching import repository_url
from submissions.source.folder_locks import held_together
from submissions.source.git import Snapshot, complete, fetch_snapshot
from submissions.source.snapshots import Asked, make_room, shared_snapshot
from submissions.source.wanted import Wanted
from submissions.verification.packages import files_of_package, files_of_packages, read_package
from tests.git_factory import commit, git, make_repository
from tests.submissions.front_door import skills
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.usefixtures("own_data_folder")

ROOT = Path(__file__).parents[3]


@pytest.fixture
def env(env: WorkerEnv, tmp_path: Path) -> WorkerEnv:
    return replace(env, policy=replace(env.policy, source_file_roots=(str(tmp_path),)))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    made = make_repository(tmp_path / "source.git", {**skills("one", "two", "three"), "beside.txt": "Not asked for.\n"})
    git(made, "config", "uploadpack.allowFilter", "true")
    return made


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of the commits that were fetched for the first time, which are still really fetched."""
    seen: list[str] = []

    async def counted(*args: object, **options: object) -> Snapshot:
        seen.append(str(options["commit_sha"]))
        return await fetch_snapshot(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(snapshots, "fetch_snapshot", counted)
    return seen


def asked(env: WorkerEnv, source: Path, path: str, *others: str, sha: str = "") -> Asked:
    async def also() -> Wanted:
        return files_of_packages([path, *others])

    sha = sha or git(source, "rev-parse", "HEAD").decode().strip()
    return Asked(repository_url(env, f"file://{source}"), sha, files_of_package(path), also)


async def name_of(env: WorkerEnv, wanted: Asked, folder: Path) -> str:
    """Read the skill that is asked for and return its name."""
    await asyncio.to_thread(folder.mkdir, parents=True)
    async with shared_snapshot(env, wanted) as snapshot:
        package = await read_package(snapshot, wanted.wanted.folder, destination=folder)
    return package.name


async def test_what_waits_is_fetched_together_and_later_needs_no_source(
    env: WorkerEnv, source: Path, tmp_path: Path, fetches: list[str]
) -> None:
    first, second = asked(env, source, "one", "two"), asked(env, source, "two")
    assert await name_of(env, first, tmp_path / "1") == "one"
    await asyncio.to_thread(shutil.rmtree, source)
    assert await name_of(env, second, tmp_path / "2") == "two"
    assert len(fetches) == 1


async def test_what_was_not_expected_is_fetched_when_it_is_asked_for(
    env: WorkerEnv, source: Path, tmp_path: Path, fetches: list[str]
) -> None:
    assert await name_of(env, asked(env, source, "one"), tmp_path / "1") == "one"
    assert await name_of(env, asked(env, source, "three"), tmp_path / "2") == "three"
    assert len(fetches) == 1


async def test_all_who_ask_at_once_wait_for_one_fetch(
    env: WorkerEnv, source: Path, tmp_path: Path, fetches: list[str]
) -> None:
    wanted = [asked(env, source, path) for path in ("one", "two", "three") * 5]
    names = await asyncio.gather(*(name_of(env, one, tmp_path / str(n)) for n, one in enumerate(wanted)))
    assert names == ["one", "two", "three"] * 5
    assert len(fetches) == 1


async def test_each_commit_has_a_snapshot_of_its_own(
    env: WorkerEnv, source: Path, tmp_path: Path, fetches: list[str]
) -> None:
    old = asked(env, source, "one")
    commit(source, skills("one", "four"))
    assert await name_of(env, asked(env, source, "four"), tmp_path / "1") == "four"
    git(source, "config", "uploadpack.allowAnySHA1InWant", "true")
    assert await name_of(env, old, tmp_path / "2") == "one"
    assert len(fetches) == 2


async def test_no_environment_reads_what_another_fetched(env: WorkerEnv, source: Path, tmp_path: Path) -> None:
    wanted = asked(env, source, "one")
    await name_of(env, wanted, tmp_path / "1")
    await asyncio.to_thread(shutil.rmtree, source)
    with pytest.raises(RepositoryNotFound):
        await name_of(replace(env, name="another"), wanted, tmp_path / "2")


async def test_what_one_policy_allowed_is_fetched_again_under_the_next(
    env: WorkerEnv, source: Path, tmp_path: Path
) -> None:
    wanted = asked(env, source, "one")
    await name_of(env, wanted, tmp_path / "1")
    forbidden = replace(env, policy=replace(env.policy, source_file_roots=()))
    with pytest.raises(RepositoryNotFound):
        await name_of(forbidden, wanted, tmp_path / "2")


async def test_a_failed_fetch_leaves_nothing_that_the_next_one_would_read(
    env: WorkerEnv, source: Path, tmp_path: Path
) -> None:
    wanted = asked(env, source, "one")
    hidden = tmp_path / "hidden"
    await asyncio.to_thread(source.rename, hidden)
    with pytest.raises(RepositoryNotFound):
        await name_of(env, wanted, tmp_path / "1")
    await asyncio.to_thread(hidden.rename, source)
    assert await name_of(env, wanted, tmp_path / "2") == "one"


@pytest.mark.parametrize("problem", [RepositoryTooLarge, FetchFailed, FetchTimedOut])
async def test_what_cannot_be_fetched_together_is_fetched_alone(
    env: WorkerEnv, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: type[SourceError]
) -> None:
    real: Callable[..., Awaitable[Snapshot]] = fetch_snapshot
    asked_for: list[str] = []

    async def strict(*args: object, **options: object) -> Snapshot:
        wanted = options["wanted"]
        assert isinstance(wanted, Wanted)
        asked_for.append(wanted.folder)
        if not wanted.folder:
            raise problem("not together")
        return await real(*args, **options)

    monkeypatch.setattr(snapshots, "fetch_snapshot", strict)
    assert await name_of(env, asked(env, source, "one", "two"), tmp_path / "1") == "one"
    assert asked_for == ["", "one"]


KILLED = """
import asyncio, sys
import django
django.setup()
from pathlib import Path
from submissions.source.folder_locks import held_alone, held_together

async def hold(folder):
    async with held_together(folder):
        (folder / "fetched-half").mkdir()
        async with held_alone(folder / "fetching"):
            print("held", flush=True)
            await asyncio.sleep(600)

asyncio.run(hold(Path(sys.argv[1])))
"""


async def test_a_process_that_is_killed_while_it_fetches_holds_up_nobody(
    env: WorkerEnv, source: Path, tmp_path: Path
) -> None:
    wanted = asked(env, source, "one")
    folder = snapshots._root() / env.name / snapshots._key(env, wanted)
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, str(folder), cwd=ROOT, env=environment, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"held\n"
    waiting = asyncio.create_task(name_of(env, wanted, tmp_path / "1"))
    # Somebody else holds the lock, so this cannot end before that one does.
    assert await asyncio.wait([waiting], timeout=0.2) == (set(), {waiting})
    assert await asyncio.to_thread(make_room, 0.0) == 0
    process.kill()
    await process.wait()
    assert await waiting == "one"
    assert not (folder / "fetched-half").exists()


async def test_room_is_made_of_what_nobody_uses_the_oldest_first(env: WorkerEnv, source: Path, tmp_path: Path) -> None:
    used = asked(env, source, "one")
    async with shared_snapshot(env, used):
        for number in range(3):
            other = make_repository(tmp_path / f"other-{number}.git", skills(f"other-{number}"))
            wanted = asked(env, other, f"other-{number}")
            await name_of(env, wanted, tmp_path / f"read-{number}")
            at = time.time() - 600 + number
            folder = snapshots._root() / env.name / snapshots._key(env, wanted)
            os.utime(folder / "in-use", (at, at))
        left_behind = snapshots._root() / env.name / "removed-half"
        left_behind.mkdir()
        total = sum(snapshots._bytes_of(one) for one in snapshots._root().glob("*/*"))

        assert await asyncio.to_thread(make_room, 3600.0, total) == 0
        assert not left_behind.exists()
        assert await asyncio.to_thread(make_room, 3600.0, total - 1) == 1
        assert await asyncio.to_thread(make_room, 300.0) == 2
        assert await asyncio.to_thread(make_room, -1.0) == 0
    assert await asyncio.to_thread(make_room, -1.0) == 1


async def test_readers_and_removers_never_meet(env: WorkerEnv, source: Path, tmp_path: Path) -> None:
    stop = False

    def remove() -> int:
        removed = 0
        while not stop:
            removed += make_room(-1.0)
        return removed

    removing = asyncio.create_task(asyncio.to_thread(remove))
    try:
        for number in range(12):
            wanted = asked(env, source, ("one", "two")[number % 2])
            assert await name_of(env, wanted, tmp_path / str(number)) == ("one", "two")[number % 2]
    finally:
        stop = True
    assert await removing > 0


async def test_a_folder_that_is_removed_while_another_makes_it_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data" / "snapshot"
    real = os.mkdir
    removed: list[Path] = []

    def meets_a_remover(path: Path, mode: int = 0o777, **options: int) -> None:
        if Path(path) == folder and folder.parent.exists() and not removed:
            removed.append(path)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        real(path, mode, **options)

    monkeypatch.setattr(os, "mkdir", meets_a_remover)
    async with held_together(folder):
        assert (folder / "in-use").exists()
    assert removed == [folder]


async def test_where_files_cannot_be_locked_each_fetches_for_itself(
    env: WorkerEnv,
    source: Path,
    tmp_path: Path,
    fetches: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(_file: object, _kind: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    for number in range(2):
        assert await name_of(env, asked(env, source, "one"), tmp_path / str(number)) == "one"
    assert len(fetches) == 2
    assert "No locks available" in caplog.text
    (folder,) = (snapshots._root() / env.name).iterdir()
    assert [path.name for path in folder.iterdir()] == ["in-use"]


async def test_who_reads_while_another_fetches_sees_what_is_missing_and_asks_no_host(
    env: WorkerEnv, source: Path, tmp_path: Path
) -> None:
    """A fetch with a filter tells git, as long as it lasts, of a host to ask for missing objects."""
    await name_of(env, asked(env, source, "one"), tmp_path / "1")
    (folder,) = (snapshots._root() / env.name).iterdir()
    snapshot = await snapshots._opened(env, folder)
    assert snapshot is not None
    git(snapshot.git_dir, "config", "extensions.partialClone", f"file://{source}")
    git(snapshot.git_dir, "config", f"remote.file://{source}.promisor", "true")
    assert await complete(snapshot, files_of_package("two"), may_fetch=False) is None
    assert await complete(snapshot, files_of_package("one"), may_fetch=False) is not None


async def test_a_small_skill_of_a_snapshot_is_listed_and_read_by_two_processes(
    env: WorkerEnv, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await name_of(env, asked(env, source, "one", "two"), tmp_path / "1") == "one"
    started: list[str] = []

    async def counted(command: Sequence[str], **options: object) -> ChildResult:
        started.append(command[2])
        return await run_child(command, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(git_process, "run_child", counted)
    assert await name_of(env, asked(env, source, "two"), tmp_path / "2") == "two"
    assert started == ["ls-tree", "cat-file"]


async def test_what_waits_later_is_fetched_together_as_well(env: WorkerEnv, source: Path, tmp_path: Path) -> None:
    assert await name_of(env, asked(env, source, "one"), tmp_path / "1") == "one"
    assert await name_of(env, asked(env, source, "two", "three"), tmp_path / "2") == "two"
    later = asked(env, source, "three")
    await asyncio.to_thread(shutil.rmtree, source)
    assert await name_of(env, later, tmp_path / "3") == "three"
