"""Objects of one package: from this machine without following a link, within the limits, and kept for others."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from submissions.source.git import Snapshot
from submissions.source.lfs import objects
from submissions.source.lfs.objects import bring_objects
from submissions.source.lfs.pointers import Pointer
from submissions.source.lfs.remote_objects import LfsLimits, Missing
from submissions.source.urls import SourcePolicy
from tests.git_factory import make_repository, skill_md
from tests.submissions.source.conftest import Fetch
from tests.submissions.source.lfs.lfs_host import pointer, put_object

MODEL = b"weights " * 500
NOT_THERE = Missing("the repository does not have it")
OTHER = Missing("what the repository has is another file")


def new_folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "r.git", {"SKILL.md": skill_md()})


async def bring(
    snapshot: Snapshot, folder: Path, policy: SourcePolicy, *pointers: Pointer, limits: LfsLimits | None = None
) -> dict[str, Missing]:
    return await bring_objects(
        snapshot, pointers or [pointer(MODEL)], new_folder(folder), policy=policy, limits=limits or LfsLimits()
    )


async def test_an_object_of_a_repository_on_this_machine_is_copied(
    source: Path, fetch: Fetch, policy: SourcePolicy, tmp_path: Path
) -> None:
    put_object(source, MODEL)
    missing = await bring(await fetch(source), tmp_path / "o", policy, pointer(MODEL), pointer(b"gone"))
    assert missing == {pointer(b"gone").oid: NOT_THERE}
    assert (tmp_path / "o" / pointer(MODEL).oid).read_bytes() == MODEL
    assert names_in(tmp_path / "o") == {pointer(MODEL).oid}


def by_link_to_a_file(at: Path, real: Path) -> None:
    at.unlink()
    at.symlink_to(real)


def by_link_to_a_folder(at: Path, real: Path) -> None:
    shutil.rmtree(at.parent)
    new_folder(real.parent / "elsewhere")
    shutil.copy(real, real.parent / "elsewhere" / at.name)
    at.parent.symlink_to(real.parent / "elsewhere")


def by_a_pipe(at: Path, _real: Path) -> None:
    at.unlink()
    os.mkfifo(at)


def by_a_folder(at: Path, _real: Path) -> None:
    at.unlink()
    at.mkdir()


@pytest.mark.parametrize(
    ("spoil", "says"),
    [(by_link_to_a_file, NOT_THERE), (by_link_to_a_folder, NOT_THERE), (by_a_pipe, OTHER), (by_a_folder, OTHER)],
    ids=lambda one: one.__name__ if callable(one) else "",
)
async def test_no_link_and_nothing_but_a_file_is_read(
    source: Path,
    fetch: Fetch,
    policy: SourcePolicy,
    tmp_path: Path,
    spoil: Callable[[Path, Path], None],
    says: Missing,
) -> None:
    snapshot = await fetch(source)
    real = tmp_path / "secret"
    real.write_bytes(MODEL)
    spoil(put_object(source, MODEL), real)
    assert await bring(snapshot, tmp_path / "o", policy) == {pointer(MODEL).oid: says}
    assert names_in(tmp_path / "o") == set()


def become_a_link(folder: Path) -> None:
    folder.rename(folder.with_name("moved.git"))
    folder.symlink_to(folder.with_name("moved.git"))


async def test_a_repository_that_has_become_a_link_gives_nothing(
    source: Path, fetch: Fetch, policy: SourcePolicy, tmp_path: Path
) -> None:
    snapshot = await fetch(source)
    put_object(source, MODEL)
    become_a_link(source)
    assert await bring(snapshot, tmp_path / "o", policy) == {pointer(MODEL).oid: NOT_THERE}


@pytest.mark.parametrize("content", [MODEL[:-1], MODEL[::-1], MODEL + b"x"], ids=["shorter", "other", "longer"])
async def test_a_file_that_is_not_the_object_is_not_taken(
    source: Path, fetch: Fetch, policy: SourcePolicy, tmp_path: Path, content: bytes
) -> None:
    put_object(source, content, pointer(MODEL))
    assert await bring(await fetch(source), tmp_path / "o", policy) == {pointer(MODEL).oid: OTHER}
    assert names_in(tmp_path / "o") == set()


async def test_no_more_objects_than_allowed_are_asked_for(
    source: Path, fetch: Fetch, policy: SourcePolicy, tmp_path: Path
) -> None:
    contents = [f"object {number}".encode() for number in range(4)]
    for content in contents:
        put_object(source, content)
    wanted = [pointer(content) for content in contents]
    missing = await bring(await fetch(source), tmp_path / "o", policy, *wanted, limits=LfsLimits(objects=3))
    assert missing == {wanted[3].oid: Missing("a skill may have 3 such files")}
    assert names_in(tmp_path / "o") == {one.oid for one in wanted[:3]}


async def test_what_was_fetched_is_kept_beside_the_snapshot_and_checked_when_it_is_taken(
    source: Path, fetch: Fetch, policy: SourcePolicy, tmp_path: Path
) -> None:
    snapshot = await fetch(source)
    original = put_object(source, MODEL)
    assert await bring(snapshot, tmp_path / "1", policy) == {}
    original.unlink()
    assert await bring(snapshot, tmp_path / "2", policy) == {}
    assert (tmp_path / "2" / original.name).read_bytes() == MODEL
    (kept,) = (snapshot.sandbox.directory / "lfs").iterdir()
    kept.write_bytes(MODEL[::-1])
    assert await bring(snapshot, tmp_path / "3", policy) == {original.name: NOT_THERE}
    assert names_in(tmp_path / "3") == set()


async def test_what_is_kept_has_a_limit_and_the_rest_is_fetched_all_the_same(
    source: Path, fetch: Fetch, policy: SourcePolicy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "KEPT_BYTES", len(MODEL) + 3)
    snapshot = await fetch(source)
    for content in (MODEL, b"more"):
        put_object(source, content)
    assert await bring(snapshot, tmp_path / "1", policy, pointer(MODEL), pointer(b"more")) == {}
    assert names_in(tmp_path / "1") == {pointer(MODEL).oid, pointer(b"more").oid}
    assert names_in(snapshot.sandbox.directory / "lfs") == {pointer(MODEL).oid}
