"""A repository that is submitted again after a skill was removed from it, moved in it, or put back."""

from __future__ import annotations

from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.test import Client

from marketplace.catalog import quarantine_skill
from marketplace.models import HistoryEvent, SkillEntry, SkillVersion
from submissions.discovery import discover
from submissions.intake import accept
from submissions.listings import keep_listing, read_listing
from tests.git_factory import commit, skill_md
from tests.submissions.front_door import drain, repository, skills, submitted
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

GONE = "Its source no longer has it"


def submit_again(env: WorkerEnv, url: str, files: dict[str, str], path: str = "") -> None:
    """Replace the content of the repository, submit it, and let the queue be worked off."""
    commit(Path(url.removeprefix("file://")), files)
    async_to_sync(submitted)(env, url, path)
    async_to_sync(drain)(env)


@pytest.fixture
def url(env: WorkerEnv, tmp_path: Path) -> str:
    """Return the address of a repository whose skills one and two are published."""
    address = repository(tmp_path, skills("one", "two"))
    submit_again(env, address, skills("one", "two"))
    assert set(SkillEntry.objects.values_list("slug", flat=True)) == {"one", "two"}
    return address


def says_gone(client: Client, slug: str) -> bool:
    """Return whether page and API say that the source has the skill no more; they have to agree."""
    page = GONE in client.get(f"/skills/{slug}").content.decode()
    note = client.get(f"/api/v1/skills/{slug}").json()["skill"]["sourceNote"] or ""
    assert (GONE in note) is page
    return page


def test_a_removed_skill_says_so_and_stays_until_it_is_back(client: Client, env: WorkerEnv, url: str) -> None:
    assert not says_gone(client, "two")
    submit_again(env, url, skills("one"))
    assert (says_gone(client, "one"), says_gone(client, "two")) == (False, True)
    assert HistoryEvent.objects.filter(action="source gone").count() == 1
    submit_again(env, url, skills("one"))
    assert HistoryEvent.objects.filter(action="source gone").count() == 1
    submit_again(env, url, skills("one", "two"))
    assert not says_gone(client, "two")


def test_a_renamed_folder_keeps_slug_and_versions(client: Client, env: WorkerEnv, url: str) -> None:
    moved = {f"uno/{path.partition('/')[2]}": text for path, text in skills("one").items()}
    before = SkillEntry.objects.get(slug="one").pk
    submit_again(env, url, {**moved, **skills("two")})
    row = SkillEntry.objects.get(slug="one")
    assert (row.pk, row.skill_path) == (before, "uno")
    assert SkillEntry.objects.count() == SkillVersion.objects.count() == 2
    assert not says_gone(client, "one")
    changed = {path: text + "\nMore of it.\n" for path, text in moved.items()}
    submit_again(env, url, {**changed, **skills("two")})
    assert SkillVersion.objects.filter(skill=row).count() == 2
    assert SkillEntry.objects.count() == 2


def test_a_quarantine_is_not_shaken_off_by_a_new_folder(client: Client, env: WorkerEnv, url: str) -> None:
    quarantine_skill(env, "one", actor="operator", reason="bad")
    submit_again(env, url, {f"uno/{path.partition('/')[2]}": text for path, text in skills("one").items()})
    assert SkillEntry.objects.count() == 2
    assert client.get("/skills/one").status_code == 404


def test_another_repository_takes_over_nothing(client: Client, env: WorkerEnv, url: str, tmp_path: Path) -> None:
    submit_again(env, url, skills("two"))
    other = repository(tmp_path, {}, "other")
    submit_again(env, other, {f"uno/{path.partition('/')[2]}": text for path, text in skills("one").items()})
    assert says_gone(client, "one")
    assert SkillEntry.objects.count() == 3


def test_what_was_listed_before_a_skill_was_published_says_nothing_of_it(
    client: Client, env: WorkerEnv, url: str
) -> None:
    old = async_to_sync(discover)(env, url)
    listing = async_to_sync(keep_listing)(env, old)
    assert async_to_sync(read_listing)(env, listing) == old
    submit_again(env, url, skills("one", "two"), path="one")
    assert not says_gone(client, "two")
    submit_again(env, url, skills("one", "two", "three"))
    # The list of an hour ago, sent now: it knows nothing of what was published since.
    async_to_sync(accept)(env, old, [], source="form", actor="tester")
    assert not says_gone(client, "three")


def test_two_skills_of_one_name_that_are_gone_leave_open_which_one_was_renamed(env: WorkerEnv, tmp_path: Path) -> None:
    files = {"a/SKILL.md": skill_md("same", "This."), "b/SKILL.md": skill_md("same", "That.")}
    address = repository(tmp_path, files, "twice")
    submit_again(env, address, files)
    submit_again(env, address, {"c/SKILL.md": skill_md("same", "Neither.")})
    assert SkillEntry.objects.filter(name="same").count() == 3
