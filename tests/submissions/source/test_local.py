"""A repository on this machine is fetched from its own folder alone, wherever that folder points."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from submissions.source.errors import RepositoryNotFound
from submissions.source.git import Snapshot, fetch_snapshot
from submissions.source.local import own_git_directory
from submissions.source.urls import SourcePolicy, normalise_repository_url
from tests.git_factory import make_repository, skill_md
from tests.submissions.source.conftest import Fetch

FILES = {"SKILL.md": skill_md(), "scripts/run.sh": "echo hi\n"}


def new_folder(path: Path) -> Path:
    path.mkdir()
    return path


async def fetch_url(url: str, policy: SourcePolicy, directory: Path) -> Snapshot:
    new_folder(directory)
    return await fetch_snapshot(normalise_repository_url(url, policy), directory=directory, policy=policy)


def _link_to(name: str) -> Callable[[Path, Path], None]:
    def link(outside: Path, inside: Path) -> None:
        shutil.rmtree(inside / name)
        (inside / name).symlink_to(outside / name)

    return link


def _git_file(outside: Path, inside: Path) -> None:
    shutil.rmtree(inside)
    inside.mkdir()
    (inside / ".git").write_text(f"gitdir: {outside}\n")


def _git_link(outside: Path, inside: Path) -> None:
    shutil.rmtree(inside)
    inside.mkdir()
    (inside / ".git").symlink_to(outside)


def _common_folder(outside: Path, inside: Path) -> None:
    (inside / "commondir").write_text(f"{outside}\n")


def _alternates(outside: Path, inside: Path) -> None:
    (inside / "objects/info/alternates").write_text(f"{outside}/objects\n")
    (inside / "refs/heads/main").write_text((outside / "refs/heads/main").read_text())


def _sibling(outside: Path, inside: Path) -> None:
    shutil.rmtree(inside)
    inside.mkdir()
    inside.with_name(f"{inside.name}.git").symlink_to(outside)


@pytest.mark.parametrize(
    "point_out",
    [_link_to("objects"), _link_to("refs"), _git_file, _git_link, _common_folder, _alternates, _sibling],
    ids=["objects", "refs", "git-file", "git-link", "common-folder", "alternates", "sibling"],
)
async def test_a_local_repository_serves_nothing_from_outside_its_folder(
    tmp_path: Path, point_out: Callable[[Path, Path], None]
) -> None:
    outside = make_repository(tmp_path / "outside.git", {"secret/SKILL.md": skill_md("secret")})
    (tmp_path / "allowed").mkdir()
    inside = make_repository(tmp_path / "allowed/inside", {"open/SKILL.md": skill_md("open")})
    policy = SourcePolicy(file_roots=(tmp_path / "allowed",))
    assert (await fetch_url(f"file://{inside}", policy, tmp_path / "d")).entries

    point_out(outside, inside)

    with pytest.raises(RepositoryNotFound, match="of its own"):
        await fetch_url(f"file://{inside}", policy, tmp_path / "e")


async def test_a_local_folder_is_fetched_by_its_name_and_not_by_what_its_name_decodes_to(tmp_path: Path) -> None:
    make_repository(tmp_path / "outside.git", {"secret/SKILL.md": skill_md("secret")})
    folder = tmp_path / "allowed/x%2f..%2f..%2foutside.git"
    folder.parent.mkdir()
    make_repository(folder, {"open/SKILL.md": skill_md("open")})
    policy = SourcePolicy(file_roots=(tmp_path / "allowed",))

    snapshot = await fetch_url(f"file://{quote(str(folder))}", policy, tmp_path / "d")

    assert [entry.path for entry in snapshot.entries] == ["open/SKILL.md"]


async def test_a_checkout_on_this_machine_is_fetched(tmp_path: Path, fetch: Fetch) -> None:
    (tmp_path / "checkout").mkdir()
    make_repository(tmp_path / "checkout.d", FILES).rename(tmp_path / "checkout/.git")

    assert len((await fetch(tmp_path / "checkout")).entries) == 2


def test_a_repository_of_very_many_files_is_not_looked_through_without_end(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r.git", FILES)

    assert own_git_directory(repository) == repository
    assert own_git_directory(repository, max_entries=5) is None
