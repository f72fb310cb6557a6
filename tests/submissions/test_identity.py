"""What makes a skill one skill: copies, renamed folders, folders that are gone, and names that somebody else has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.moderation import quarantine_skill
from submissions.discovery import NoSkillFound, discover
from submissions.intake import Outcome
from submissions.models import QueueMessage
from submissions.states import State
from submissions.store.queries import get_submission
from tests.git_factory import commit, git, skill_md
from tests.marketplace.pages.page_factory import publish
from tests.submissions.commands.run import run
from tests.submissions.front_door import drain, repository, submitted, submitted_one, worked_off
from vskill.environments import WorkerEnv
from vskill.kv.threads import writers

pytestmark = pytest.mark.django_db(transaction=True)

DEPLOY = skill_md("deploy", "Deploys.")
OTHER = skill_md("deploy", "Deploys, but otherwise.")
ROOT = {"SKILL.md": skill_md("cases", "The root."), "one/SKILL.md": skill_md("one"), "two/SKILL.md": skill_md("two")}


def change(folder: Path, files: Mapping[str, bytes | str]) -> str:
    return commit(folder / "repository.git", files)


async def published(env: WorkerEnv, url: str) -> dict[str, str]:
    """Submit everything, work it off, and return the folder of each skill by its slug."""
    await submitted(env, url)
    await drain(env)
    return {row.slug: row.skill_path async for row in SkillEntry.objects.exclude(identity="")}


async def skill(slug: str) -> SkillEntry:
    row: SkillEntry = await SkillEntry.objects.aget(key=f"skill:{slug}")
    return row


async def page(slug: str, query: str = "") -> str:
    return (await AsyncClient().get(f"/skills/{slug}{query}")).content.decode()


async def test_one_content_in_two_folders_is_one_skill_with_both_places(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, {"a/deploy/SKILL.md": DEPLOY, "skills/deploy/SKILL.md": DEPLOY, "b/SKILL.md": DEPLOY})
    (answer,) = await submitted(env, url)
    await drain(env)

    assert (answer.skill.path, answer.skill.also_at) == ("skills/deploy", ("a/deploy", "b"))
    row = await skill("deploy")
    assert (row.skill_path, row.record.also_at) == ("skills/deploy", ("a/deploy", "b"))
    assert await SkillVersion.objects.acount() == 1
    shown = await page("deploy")
    assert '<span class="mono">a/deploy</span>, <span class="mono">b</span>' in shown


async def test_two_contents_of_one_name_are_two_skills_and_the_canonical_folder_has_the_plain_name(
    env: WorkerEnv, tmp_path: Path
) -> None:
    files = {"plugins/x/skills/deploy/SKILL.md": OTHER, "skills/deploy/SKILL.md": DEPLOY}
    url = repository(tmp_path, files)
    copy, canonical = await submitted(env, url)
    assert "belongs to another skill of this publisher" in copy.skill.notes[0]
    # The canonical one loses its message, so that the other one is published first.
    assert canonical.submission is not None
    await QueueMessage.objects.filter(subject=canonical.submission.id).adelete()
    await drain(env)
    await published(env, url)

    slugs = {row.skill_path: row.slug async for row in SkillEntry.objects.exclude(identity="")}
    assert slugs["skills/deploy"] == "deploy"
    assert slugs["plugins/x/skills/deploy"] == copy.skill.slug != "deploy"


async def test_a_copy_that_appears_later_is_told_and_takes_nothing(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, {"deploy/SKILL.md": DEPLOY})
    assert await published(env, url) == {"deploy": "deploy"}
    change(tmp_path, {"deploy/SKILL.md": DEPLOY, "skills/deploy/SKILL.md": DEPLOY})
    (answer,) = await submitted(env, url)

    assert (answer.skill.path, answer.outcome) == ("deploy", Outcome.ALREADY_VERIFIED)
    row = await skill("deploy")
    assert (row.skill_path, row.record.also_at, row.record.source_gone_at) == ("deploy", ("skills/deploy",), "")


async def test_a_copy_that_is_submitted_alone_becomes_no_second_skill(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, {"deploy/SKILL.md": DEPLOY, "x/deploy/SKILL.md": DEPLOY})
    await worked_off(env, await submitted_one(env, url, path="deploy"))
    ended = await worked_off(env, await submitted_one(env, url, path="x/deploy"))

    assert (ended.state, ended.text("slug")) == (State.PUBLISHED, "deploy")
    assert [one.slug async for one in SkillEntry.objects.exclude(identity="")] == ["deploy"]
    assert (await skill("deploy")).record.also_at == ("x/deploy",)
    (again,) = await submitted(env, url, path="x/deploy")
    assert again.outcome is Outcome.ALREADY_VERIFIED


async def test_withdrawn_content_is_not_published_from_another_folder(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, {"deploy/SKILL.md": DEPLOY, "x/deploy/SKILL.md": DEPLOY})
    await worked_off(env, await submitted_one(env, url, path="deploy"))
    await writers.run(quarantine_skill, env, "deploy", actor="op", reason="stolen")
    ended = await worked_off(env, await submitted_one(env, url, path="x/deploy"))

    assert ended.state is State.ON_HOLD
    assert "stolen" in ended.text("reason")


async def test_a_renamed_folder_keeps_slug_versions_and_downloads(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, {"skills/one/SKILL.md": DEPLOY})
    await published(env, url)
    await SkillEntry.objects.filter(key="skill:deploy").aupdate(downloads=7)
    change(tmp_path, {"skills/uno/SKILL.md": DEPLOY})
    (answer,) = await submitted(env, url)
    assert (answer.outcome, answer.skill.continues, answer.skill.slug) == (Outcome.CREATED, "skills/one", "deploy")
    assert "Its source no longer has it" in await page("deploy")
    await drain(env)

    assert [(row.slug, row.skill_path) async for row in SkillEntry.objects.exclude(identity="")] == [
        ("deploy", "skills/uno")
    ]
    row = await skill("deploy")
    assert (row.downloads, row.record.source_gone_at, await SkillVersion.objects.acount()) == (7, "", 1)
    assert "no longer has it" not in await page("deploy")
    (again,) = await submitted(env, url)
    assert again.outcome is Outcome.ALREADY_VERIFIED


async def test_a_renamed_folder_with_changes_is_a_new_version_and_the_old_one_keeps_its_folder(
    env: WorkerEnv, tmp_path: Path
) -> None:
    url = repository(tmp_path, {"skills/one/SKILL.md": DEPLOY, "skills/two/SKILL.md": skill_md("two")})
    await published(env, url)
    change(tmp_path, {"skills/uno/SKILL.md": OTHER, "skills/two/SKILL.md": skill_md("two")})

    assert await published(env, url) == {"deploy": "skills/uno", "two": "skills/two"}
    old_version, new_version = [one async for one in SkillVersion.objects.filter(name="deploy").order_by("pk")]
    assert (old_version.skill_path, new_version.skill_path) == ("skills/one", "skills/uno")
    old = await page("deploy", f"?version={old_version.version}")
    assert '<dd class="mono">skills/one</dd>' in old
    assert '<dd class="mono">skills/uno</dd>' in await page("deploy")


async def test_a_folder_that_came_back_before_the_renamed_one_was_published_keeps_its_skill(
    env: WorkerEnv, tmp_path: Path
) -> None:
    url = repository(tmp_path, {"skills/one/SKILL.md": DEPLOY})
    await published(env, url)
    change(tmp_path, {"skills/uno/SKILL.md": OTHER})
    await submitted(env, url)
    change(tmp_path, {"skills/one/SKILL.md": DEPLOY, "skills/uno/SKILL.md": OTHER})
    await discover(env, url)
    await drain(env)

    assert (await skill("deploy")).skill_path == "skills/one"
    assert await SkillEntry.objects.filter(skill_path="skills/uno").acount() == 1


async def test_a_withheld_skill_is_not_published_under_another_folder(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, {"skills/one/SKILL.md": DEPLOY})
    await published(env, url)
    await writers.run(quarantine_skill, env, "deploy", actor="op", reason="stolen")
    change(tmp_path, {"skills/uno/SKILL.md": OTHER})
    (answer,) = await submitted(env, url)

    assert answer.outcome is Outcome.WITHDRAWN
    assert "stolen" in answer.reason


async def test_a_removed_folder_is_said_with_date_and_commit_until_it_is_back(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, ROOT)
    await published(env, url)
    sha = change(tmp_path, {"SKILL.md": ROOT["SKILL.md"], "one/SKILL.md": ROOT["one/SKILL.md"]})
    changed = (await skill("two")).changed_at
    await submitted(env, url)

    shown = await page("two")
    assert "Its source no longer has it" in shown
    assert f'title="{sha}"' in shown
    assert "Its source no longer has it" not in await page("one") + await page("cases")
    row = await skill("two")
    assert (row.record.source_gone_commit, row.changed_at) == (sha, changed)
    change(tmp_path, ROOT)
    await discover(env, url)
    assert (await skill("two")).record.source_gone_at == ""


async def test_a_repository_without_skills_says_so_of_those_it_had(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, {"one/SKILL.md": DEPLOY})
    await published(env, url)
    change(tmp_path, {"README.md": "x"})
    with pytest.raises(NoSkillFound):
        await discover(env, url)
    assert (await skill("deploy")).record.source_gone_at


async def test_an_older_commit_a_tag_another_branch_and_a_dry_run_say_nothing_of_a_folder(
    env: WorkerEnv, tmp_path: Path
) -> None:
    url = repository(tmp_path, {"two/SKILL.md": skill_md("two")})
    first = git(tmp_path / "repository.git", "rev-parse", "HEAD").decode().strip()
    git(tmp_path / "repository.git", "tag", "v1")
    git(tmp_path / "repository.git", "branch", "old")
    change(tmp_path, {"one/SKILL.md": DEPLOY, "two/SKILL.md": skill_md("two")})
    await published(env, url)
    for end in (f"#{first}", "#v1", "#old"):
        await discover(env, f"{url}{end}")
    change(tmp_path, {"two/SKILL.md": skill_md("two")})
    await discover(env, url, note=False)
    assert (await skill("deploy")).record.source_gone_at == ""
    # The default branch is that also where it is named.
    await discover(env, f"{url}#main")
    assert (await skill("deploy")).record.source_gone_at


async def test_a_name_that_another_publisher_has_is_told_before_submission(
    env: WorkerEnv, tmp_path: Path, async_client: AsyncClient
) -> None:
    await sync_to_async(publish)(env, "deploy", repo_url="https://github.com/acme/skills")
    url = repository(tmp_path, {"a/SKILL.md": DEPLOY, "b/SKILL.md": skill_md("free")})
    slugs = [one.slug for one in (await discover(env, url)).skills]
    sentence = f"The name deploy belongs to acme, so it will be {slugs[0]}."
    assert slugs[0].endswith("-deploy")
    assert slugs[1] == "free"

    form = (await async_client.post("/submit", {"repository_url": url})).content.decode()
    body = json.dumps({"repoUrl": url, "dryRun": True})
    answer = await async_client.post("/api/v1/submissions", body, content_type="application/json")
    printed = (await sync_to_async(run)("submit", url, "--dry-run")).out

    assert sentence in form
    assert f'Its name here: <span class="mono">{slugs[1]}</span>' in form
    first, second = answer.json()["skills"]
    assert (first["plannedSlug"], first["plainSlugHeldBy"]) == (slugs[0], "acme")
    assert (second["plannedSlug"], second["plainSlugHeldBy"]) == ("free", None)
    assert sentence in printed
    assert "would be submitted as free;" in printed
    await drain(env)
    assert await SkillEntry.objects.exclude(identity="").acount() == 1
    assert sorted(await published(env, url)) == sorted(["deploy", *slugs])


async def test_what_was_planned_is_in_the_submission(env: WorkerEnv, tmp_path: Path) -> None:
    submission = await submitted_one(env, repository(tmp_path, {"a/SKILL.md": DEPLOY, "b/SKILL.md": DEPLOY}))
    stored = await get_submission(env, submission.id)
    assert (stored.text("plannedSlug"), stored.value["alsoAt"], stored.value["continues"]) == ("deploy", ["b"], None)
