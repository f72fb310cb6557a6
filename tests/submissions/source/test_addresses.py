"""Every row of docs/addresses.md, fetched from a real repository or refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from submissions.discovery import NoSkillFound, discover
from submissions.source.errors import CommitNotOnBranch, InvalidRepositoryURL, RepositoryEmpty
from submissions.source.git import Snapshot, fetch_snapshot
from submissions.source.urls import SourcePolicy, normalise_repository_url
from tests.git_factory import commit, git, make_repository, skill_md
from vskill.environments import WorkerEnv

DOCUMENT: Final = Path(__file__).resolve().parents[3] / "docs" / "addresses.md"
FILES: Final = {"skills/one/SKILL.md": skill_md("one"), "skills/two/SKILL.md": skill_md("two")}
MAIN: Final = "COMMIT"


def rows(title: str) -> list[list[str]]:
    section = DOCUMENT.read_text(encoding="utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


UNDERSTOOD: Final = rows("Understood")
REFUSED: Final = rows("Refused")


def test_the_document_has_both_tables() -> None:
    assert len(UNDERSTOOD) > 40
    assert len(REFUSED) > 20


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with the branches and tags of the document."""
    made = make_repository(tmp_path_factory.mktemp("addresses") / "r.git", FILES)
    commit(made, {**FILES, "on-x": "x"}, branch="feature/x")
    git(made, "tag", "v1.2", "main")
    git(made, "tag", "-a", "-m", "x", "pkg/v1.0", "feature/x")
    # Neither may be taken for a branch because its name ends with what was asked for.
    git(made, "branch", "other/refs/heads/feature", "main")
    git(made, "update-ref", "refs/other/feature", "main")
    return made


def new_folder(folder: Path) -> None:
    folder.mkdir()


async def fetched(address: str, url: str, repository: Path, folder: Path) -> Snapshot:
    policy = SourcePolicy(rewrites=((url, f"file://{repository}"),))
    found = normalise_repository_url(address, policy)
    assert found.url == url
    new_folder(folder)
    return await fetch_snapshot(found, directory=folder, policy=policy)


@pytest.mark.parametrize(("address", "url", "ref", "place"), UNDERSTOOD, ids=[row[0] for row in UNDERSTOOD])
async def test_an_address_that_is_understood_leads_to_its_place(
    address: str, url: str, ref: str, place: str, repository: Path, tmp_path: Path
) -> None:
    head = git(repository, "rev-parse", "main").decode().strip()

    snapshot = await fetched(address.replace(MAIN, head), url, repository, tmp_path / "d")

    expected = {"default branch": "HEAD", "the commit": "HEAD"}.get(ref, ref)
    named = re.search(r"the skill named `?(\w+)", place)
    assert snapshot.ref == expected
    assert (snapshot.place.path, snapshot.place.skill) == (
        "" if named or place == "root" else place,
        named[1] if named else "",
    )
    assert snapshot.commit_sha == git(repository, "rev-parse", f"{snapshot.ref}^{{commit}}").decode().strip()


@pytest.mark.parametrize(("address", "words"), REFUSED, ids=[row[0] for row in REFUSED])
def test_an_address_that_is_not_understood_is_refused_with_what_to_write(address: str, words: str) -> None:
    with pytest.raises(InvalidRepositoryURL, match=re.escape(words)) as caught:
        normalise_repository_url(address, SourcePolicy())
    assert "token@" not in str(caught.value)
    assert "user:password" not in str(caught.value)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("/tree/feature/y/skills", "none is called 'feature' or 'feature/y/skills', or anything between them"),
        ("/tree/feature", "none is called 'feature'. Look up"),
        ("#usage", "none is called 'usage'"),
        ("/tree/refs/other/feature", "none is called"),
        ("/tree/abcdef12/skills", "all 40 digits"),
    ],
)
async def test_a_ref_that_the_repository_lacks_is_said_and_never_the_default_branch(
    end: str, words: str, repository: Path, tmp_path: Path
) -> None:
    url = "https://github.com/acme/skills"
    with pytest.raises(RepositoryEmpty, match=re.escape(words)):
        await fetched(f"{url}{end}", url, repository, tmp_path / "d")


async def test_a_branch_comes_before_a_tag_of_the_same_name_and_the_longer_ref_before_both(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r.git", FILES)
    git(repository, "tag", "main")
    git(repository, "branch", "release", "refs/heads/main")
    url = "https://github.com/acme/skills"
    assert (await fetched(f"{url}/tree/main/skills", url, repository, tmp_path / "a")).ref == "HEAD"
    git(repository, "tag", "release/skills/one", "refs/heads/main")
    snapshot = await fetched(f"{url}/tree/release/skills/one", url, repository, tmp_path / "b")
    assert (snapshot.ref, snapshot.place.path) == ("refs/tags/release/skills/one", "")


async def test_a_folder_with_brackets_takes_no_part_in_the_search_for_refs(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r.git", {"a[b]*/SKILL.md": skill_md("a")})
    url = "https://github.com/acme/skills"
    snapshot = await fetched(f"{url}/tree/main/a[b]*", url, repository, tmp_path / "d")
    assert (snapshot.ref, snapshot.place.path) == ("HEAD", "a[b]*")


async def test_a_commit_before_an_at_sign_is_held_to_the_branches_as_well(repository: Path, tmp_path: Path) -> None:
    url = "https://github.com/acme/skills"
    head = git(repository, "rev-parse", "main").decode().strip()
    snapshot = await fetched(f"{url}#{head}@two", url, repository, tmp_path / "d")
    assert (snapshot.commit_sha, snapshot.place.skill, snapshot.ref) == (head, "two", "HEAD")
    stray = git(repository, "commit-tree", "-m", "stray", "main^{tree}").decode().strip()
    with pytest.raises(CommitNotOnBranch):
        await fetched(f"{url}#{stray}@two", url, repository, tmp_path / "e")


@pytest.mark.django_db(transaction=True)
async def test_a_name_after_the_at_sign_chooses_the_skill(env: WorkerEnv, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r.git", FILES)
    git(repository, "branch", "feature/x")
    discovery = await discover(env, f"file://{repository}#feature/x@two")
    assert ([skill.name for skill in discovery.skills], discovery.ref) == (["two"], "refs/heads/feature/x")
    with pytest.raises(NoSkillFound, match="is called 'three'"):
        await discover(env, f"file://{repository}#@three")
