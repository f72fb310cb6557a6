"""What is asked for is fetched and counted; what lies beside it is not, where the host can leave it out."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from submissions.source.blobs import read_blob
from submissions.source.errors import FetchFailed, RepositoryTooLarge, SourceError
from submissions.source.git import Snapshot, fetch_snapshot
from submissions.source.git_process import FetchLimits
from submissions.source.urls import SourcePolicy, normalise_repository_url
from submissions.source.wanted import Wanted
from submissions.verification.errors import InvalidPackage
from submissions.verification.found_skills import find_skills, skill_files_below
from submissions.verification.packages import files_of_package, read_package
from submissions.verification.structure import PackageLimits
from tests.git_factory import commit_raw_tree, git, make_repository, skill_md, write_raw_tree
from tests.submissions.source.https_host import CERTIFICATE, HttpsHost, https_host

NOISE = random.Random(1).randbytes(400_000)
FILES: dict[str, bytes | str] = {
    "README.md": "Read me.\n",
    "noise": NOISE,
    "skills/a/SKILL.md": skill_md("a"),
    "skills/a/run.sh": "echo a\n",
    "skills/b/SKILL.md": skill_md("b"),
    "skills/b/notes/deep.md": "Deep.\n",
}
POLICY = SourcePolicy(private_hosts=frozenset({"127.0.0.1"}), ca_file=CERTIFICATE)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Make a repository that its host may filter."""
    (tmp_path / "a").mkdir()
    made = make_repository(tmp_path / "a/b", FILES)
    git(made, "config", "uploadpack.allowFilter", "true")
    return made


@pytest.fixture
def host(tmp_path: Path, repository: Path) -> Iterator[HttpsHost]:
    """Serve the repository over https, as ``/a/b``."""
    with https_host(repository.parent.parent) as serving:
        yield serving


def new_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder


async def take(host: HttpsHost, folder: Path, wanted: Wanted | None, limits: FetchLimits | None = None) -> Snapshot:
    url = normalise_repository_url(f"https://127.0.0.1:{host.port}/a/b", POLICY)
    return await fetch_snapshot(url, directory=new_folder(folder), policy=POLICY, limits=limits, wanted=wanted)


def blobs_of(snapshot: Snapshot) -> set[str]:
    """Return the paths whose content is in the fetched repository."""
    listed = git(snapshot.git_dir, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
    present = {line.split(" ")[0] for line in listed.decode().splitlines() if line.endswith(" blob")}
    return {entry.path for entry in snapshot.entries if entry.oid in present}


async def test_a_list_of_skills_transfers_their_skill_md_alone(tmp_path: Path, host: HttpsHost) -> None:
    snapshot = await take(host, tmp_path / "d", skill_files_below(""))

    assert [entry.path for entry in snapshot.entries] == sorted(FILES)
    assert blobs_of(snapshot) == {"skills/a/SKILL.md", "skills/b/SKILL.md"}
    assert [skill.name for skill in await find_skills(snapshot)] == ["a", "b"]
    assert all(request.startswith("/a/b/") for request in host.requests)


async def test_one_folder_transfers_and_lists_what_is_below_it(tmp_path: Path, host: HttpsHost) -> None:
    snapshot = await take(host, tmp_path / "d", files_of_package("skills/b"))

    assert [(entry.path, entry.size) for entry in snapshot.entries] == [
        ("skills/b/SKILL.md", len(skill_md("b"))),
        ("skills/b/notes/deep.md", 6),
    ]
    assert blobs_of(snapshot) == {"skills/b/SKILL.md", "skills/b/notes/deep.md"}


@pytest.mark.parametrize("refusal", ["no filters", "not this filter", "no single objects"])
async def test_where_the_host_gives_no_single_files_everything_is_fetched(
    tmp_path: Path, repository: Path, host: HttpsHost, refusal: str
) -> None:
    if refusal == "no filters":
        git(repository, "config", "uploadpack.allowFilter", "false")
    elif refusal == "not this filter":
        git(repository, "config", "uploadpackfilter.allow", "false")
    else:
        host.speaks_version_2 = False

    snapshot = await take(host, tmp_path / "d", skill_files_below("skills"))
    package_snapshot = await take(host, tmp_path / "e", files_of_package("skills/a"))

    assert [skill.path for skill in await find_skills(snapshot)] == ["skills/a", "skills/b"]
    package = await read_package(package_snapshot, "skills/a", destination=new_folder(tmp_path / "out"))
    assert [file.path for file in package.files] == ["SKILL.md", "run.sh"]


async def test_limits_count_for_what_is_asked_for(tmp_path: Path, host: HttpsHost) -> None:
    exact = FetchLimits(pack_bytes=100_000, files=2, tree_bytes=1000)

    snapshot = await take(host, tmp_path / "d", files_of_package("skills/a"), exact)

    assert blobs_of(snapshot) == {"skills/a/SKILL.md", "skills/a/run.sh"}
    with pytest.raises(RepositoryTooLarge):
        await take(host, tmp_path / "e", None, FetchLimits(pack_bytes=100_000))
    with pytest.raises(RepositoryTooLarge, match="more than 1 files"):
        await take(host, tmp_path / "f", files_of_package("skills/a"), FetchLimits(files=1))
    with pytest.raises(RepositoryTooLarge, match="MiB together"):
        await take(host, tmp_path / "g", files_of_package("skills/a"), FetchLimits(tree_bytes=10))


async def test_the_second_fetch_gets_what_the_first_left_of_the_budget(tmp_path: Path, host: HttpsHost) -> None:
    with pytest.raises(RepositoryTooLarge):
        await take(host, tmp_path / "d", Wanted("", lambda entries: entries[:-1]), FetchLimits(pack_bytes=300_000))


async def test_neither_more_files_nor_more_skills_than_are_read_are_transferred(
    tmp_path: Path, host: HttpsHost
) -> None:
    snapshot = await take(host, tmp_path / "d", skill_files_below("", PackageLimits(skills=1)))
    assert blobs_of(snapshot) == set()

    snapshot = await take(host, tmp_path / "e", files_of_package("skills/a", PackageLimits(files=1)))
    assert blobs_of(snapshot) == {"skills/a/SKILL.md"}
    with pytest.raises(InvalidPackage, match="2 files; 1 are allowed"):
        await read_package(
            snapshot, "skills/a", destination=new_folder(tmp_path / "out"), limits=PackageLimits(files=1)
        )


async def test_a_file_that_was_not_asked_for_is_missing_and_nobody_is_asked_for_it(
    tmp_path: Path, host: HttpsHost
) -> None:
    snapshot = await take(host, tmp_path / "d", skill_files_below("skills/a"))
    everything = await take(host, tmp_path / "e", Wanted("skills"))
    asked = len(host.requests)
    [unread] = [entry for entry in everything.entries if entry.path == "skills/b/notes/deep.md"]

    with pytest.raises(FetchFailed, match="could not be read"):
        await read_blob(snapshot, unread)

    git_config = (snapshot.git_dir / "config").read_text(encoding="utf-8")
    assert "promisor" not in git_config
    assert len(host.requests) == asked


@pytest.mark.parametrize("folder", ["absent", "README.md", "../skills", "./skills", "skills//a", "skills/../skills"])
async def test_a_folder_that_is_none_has_no_files(tmp_path: Path, host: HttpsHost, folder: str) -> None:
    assert (await take(host, tmp_path / "d", skill_files_below(folder))).entries == ()


async def test_a_short_tree_that_lists_a_million_files_is_refused(
    tmp_path: Path, repository: Path, host: HttpsHost
) -> None:
    tree = write_raw_tree(repository, {b"SKILL.md": b"x"})
    for _ in range(6):
        tree = write_raw_tree(repository, {b"d%d" % number: tree for number in range(10)})
    commit_raw_tree(repository, {b"d": tree})

    with pytest.raises(SourceError, match="more than 100,000 files"):
        await take(host, tmp_path / "d", skill_files_below(""))
    assert len((await take(host, tmp_path / "e", files_of_package("d/d0/d0/d0/d0/d0/d0"))).entries) == 1
