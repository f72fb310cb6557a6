"""A listing is kept for a while, and looked through by folder, words and page."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from submissions.discovery import DiscoveredSkill, Discovery, discover
from submissions.listings import Choice, ListingExpired, keep_listing, page_of, read_listing
from tests.loop_steps import loop_steps
from tests.submissions.front_door import repository, skills
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry

SHA = "1" * 40


def found(*paths: str) -> Discovery:
    made = tuple(
        DiscoveredSkill(path, path.rpartition("/")[2], f"Does {path}.", (), "d" * 64) for path in sorted(paths)
    )
    return Discovery("https://github.com/acme/skills", SHA, made, "HEAD")


@pytest.mark.django_db(transaction=True)
async def test_a_listing_is_read_as_it_was_kept_once_for_each_commit(env: WorkerEnv, tmp_path: Path) -> None:
    discovery = await discover(env, repository(tmp_path, {**skills("one"), "bad/SKILL.md": "x"}))

    listing = await keep_listing(env, discovery)

    assert await read_listing(env, listing) == discovery
    assert await keep_listing(env, discovery) == listing
    assert await KVEntry.objects.filter(key__startswith="listing:").acount() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("listing", ["", "0" * 32, "\0", "x" * 600])
async def test_a_listing_that_was_not_made_here_is_said_to_be_unknown(env: WorkerEnv, listing: str) -> None:
    with pytest.raises(ListingExpired, match="enter the address again"):
        await read_listing(env, listing)


@pytest.mark.django_db(transaction=True)
async def test_a_listing_belongs_to_its_environment_and_ends(env: WorkerEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = await keep_listing(env, found("a"))
    with pytest.raises(ListingExpired):
        await read_listing(replace(env, name="other"), listing)

    monkeypatch.setattr("submissions.listings.LISTING_HOURS", timedelta(seconds=-1) / timedelta(hours=1))
    old = await keep_listing(env, found("b"))
    with pytest.raises(ListingExpired):
        await read_listing(env, old)


@pytest.mark.django_db(transaction=True)
async def test_no_step_of_the_loop_looks_at_every_skill_of_a_listing(env: WorkerEnv) -> None:
    many = found(*(f"s{number:05}" for number in range(3000)))
    with loop_steps() as steps:
        listing = await keep_listing(env, many)
        read = await read_listing(env, listing)

    assert read == many
    assert steps.most_calls < 3000, steps.busiest


def test_pages_follow_one_another_without_gaps() -> None:
    discovery = found(*(f"s{number:03}" for number in range(120)))
    seen: list[str] = []
    start: int | None = 0
    while start is not None:
        page = page_of(discovery, Choice(), start=start)
        assert page.matching == 120
        seen += [one.path for one in page.skills]
        start = page.following

    assert seen == [one.path for one in discovery.skills]
    assert page_of(discovery, Choice(), start=10**9).skills == ()


@pytest.mark.parametrize(
    ("choice", "paths"),
    [
        (Choice("a"), ["a/one", "a/two"]),
        (Choice("/a/"), ["a/one", "a/two"]),
        (Choice("a/one"), ["a/one"]),
        (Choice("", "TWO"), ["a/two", "b/two"]),
        (Choice("b", "does two"), ["b/two"]),
        (Choice("", "absent"), []),
        (Choice("absent"), []),
    ],
)
def test_a_folder_and_words_narrow_a_listing_down(choice: Choice, paths: list[str]) -> None:
    assert [one.path for one in page_of(found("a/one", "a/two", "ab/x", "b/two"), choice).skills] == paths


@pytest.mark.parametrize(
    ("paths", "folder", "folders"),
    [
        (["one", "two"], "", []),
        (["skills/one", "skills/two"], "", []),
        (["skills/a/one", "skills/a/two", "skills/b/one", "skills/c"], "", [("skills/a", 2), ("skills/b", 1)]),
        (["a/x/one", "a/y/two", "b/one"], "", [("a", 2), ("b", 1)]),
        (["a/x/one", "a/y/two", "b/one"], "a", [("a/x", 1), ("a/y", 1)]),
        (["a/b/c/d/one"], "", []),
    ],
)
def test_the_nearest_folders_that_divide_the_skills_are_offered(
    paths: list[str], folder: str, folders: list[tuple[str, int]]
) -> None:
    assert list(page_of(found(*paths), Choice(folder)).folders) == folders
