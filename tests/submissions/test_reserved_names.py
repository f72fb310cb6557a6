"""A name that the policy reserves for an owner: a squatter is told at submission, and nothing is half-written."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import AsyncClient, override_settings

from marketplace.catalog import SlugTaken, rename_skill
from marketplace.errors import NameReserved
from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.planned_slugs import plan_slugs
from marketplace.skills.reservations import why_reserved
from submissions.discovery import discover
from submissions.intake import Outcome, accept_offered
from submissions.jobs.progress import progress_of
from submissions.jobs.work import run_job, start_job
from submissions.models import QueueMessage, SubmissionEntry, SubmissionTransition
from submissions.states import State
from tests.git_factory import commit, skill_md
from tests.marketplace.factories import publish_example
from tests.submissions.commands.run import run
from tests.submissions.front_door import repository, skills, submitted, submitted_one, worked_off
from vskill.environments import WorkerEnv
from vskill.kv.threads import writers
from vskill.reserved_names import ReservedName

pytestmark = pytest.mark.django_db(transaction=True)

SQUATTER = "https://github.com/squatter/skills"


def reserving(env: WorkerEnv, pattern: str = "corp-*", *owners: str) -> WorkerEnv:
    """Return the environment with a policy that reserves names, by default for somebody else's git server."""
    name = ReservedName(pattern, owners or ("git.corp.example/platform",))
    return replace(env, policy=replace(env.policy, reserved_names=(name,)))


def everywhere(pattern: str = "corp-*", owner: str = "git.corp.example/platform") -> Any:
    """Reserve names in the settings, as pages, API and commands read them."""
    options: dict[str, Any] = settings.VSKILL_ENVIRONMENTS["default"]
    policy = {**options.get("policy", {}), "reserved_names": {pattern: owner}}
    return override_settings(VSKILL_ENVIRONMENTS={"default": {**options, "policy": policy}})


async def nothing_is_written() -> bool:
    tables = (SubmissionEntry, SubmissionTransition, QueueMessage, SkillEntry, SkillVersion)
    return sum([await table.objects.acount() for table in tables]) == 0


async def test_a_squatter_is_told_whose_name_it_is_and_nothing_is_written(env: WorkerEnv, tmp_path: Path) -> None:
    (answer,) = await submitted(reserving(env), repository(tmp_path, skills("corp-login")))

    assert answer.outcome is Outcome.RESERVED
    assert "reserved here for git.corp.example/platform (corp-*)" in answer.reason
    assert await nothing_is_written()


async def test_its_owner_takes_the_name(env: WorkerEnv, tmp_path: Path) -> None:
    theirs = reserving(env, "corp-*", f"/{tmp_path.name}")
    published = await worked_off(theirs, await submitted_one(theirs, repository(tmp_path, skills("corp-login"))))

    assert (published.state, published.text("slug")) == (State.PUBLISHED, "corp-login")


@pytest.mark.parametrize("name", ["Corp Login", "\u0441\u043er\u0440-login", "c0rp-login"])
async def test_a_name_that_only_looks_like_it_is_refused_as_well(env: WorkerEnv, tmp_path: Path, name: str) -> None:
    files = {"login/SKILL.md": skill_md(name, "Logs in.")}
    (answer,) = await submitted(reserving(env), repository(tmp_path, files))

    assert answer.outcome in (Outcome.RESERVED, Outcome.INVALID), answer
    assert answer.outcome is Outcome.RESERVED
    assert await nothing_is_written()


async def test_the_other_skills_of_the_repository_go_through(env: WorkerEnv, tmp_path: Path) -> None:
    answers = await submitted(reserving(env), repository(tmp_path, skills("corp-login", "pdf-tools")))

    assert {one.skill.name: one.outcome for one in answers} == {
        "corp-login": Outcome.RESERVED,
        "pdf-tools": Outcome.CREATED,
    }


async def test_an_owner_whose_own_name_is_reserved_is_refused(env: WorkerEnv, tmp_path: Path) -> None:
    (tmp_path / "corp-tools").mkdir()
    (answer,) = await submitted(reserving(env), repository(tmp_path / "corp-tools", skills("pdf-tools")))

    assert answer.outcome is Outcome.RESERVED
    assert "Names of publishers" in answer.reason
    assert await nothing_is_written()


async def test_a_listing_that_was_made_before_the_policy_lets_nobody_past_it(env: WorkerEnv, tmp_path: Path) -> None:
    before = await discover(env, repository(tmp_path, skills("corp-login")))
    (answer,) = await accept_offered(reserving(env), before, source="test", actor="tester")

    assert not before.skills[0].reserved
    assert answer.outcome is Outcome.RESERVED
    assert await nothing_is_written()


async def test_what_waits_when_a_name_is_reserved_is_held_and_not_published(env: WorkerEnv, tmp_path: Path) -> None:
    submission = await submitted_one(env, repository(tmp_path, skills("corp-login")))
    held = await worked_off(reserving(env), submission)

    assert held.state is State.ON_HOLD
    assert "reserved here for git.corp.example/platform" in held.text("reason")
    assert await SkillEntry.objects.acount() == 0


async def test_a_skill_that_had_the_name_before_keeps_it_and_its_updates(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, skills("corp-login"))
    await worked_off(env, await submitted_one(env, url))
    commit(tmp_path / "repository.git", {"corp-login/SKILL.md": skill_md("corp-login", "Logs in, better.")})
    strict = reserving(env)
    again = await worked_off(strict, await submitted_one(strict, url))

    assert (again.state, again.text("slug"), again.text("version")) == (State.PUBLISHED, "corp-login", "0.0.2")


async def test_a_published_skill_cannot_rename_itself_to_a_reserved_name(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, {"login/SKILL.md": skill_md("login", "Logs in.")})
    await worked_off(env, await submitted_one(env, url))
    commit(tmp_path / "repository.git", {"login/SKILL.md": skill_md("corp-login", "Logs in.")})
    (answer,) = await submitted(reserving(env), url)

    assert answer.outcome is Outcome.RESERVED
    assert await SubmissionEntry.objects.acount() == 1


def test_a_longer_name_that_is_given_for_a_taken_one_is_never_a_reserved_one(env: WorkerEnv) -> None:
    publish_example(env, name="login")
    strict = reserving(env, "squatter-*")
    # The publisher is called squatter, which is free; squatter-login would be next.
    (planned,) = plan_slugs(strict, SQUATTER, [("skills/login", "login")])
    published = publish_example(strict, name="login", repo_url=SQUATTER, body="Another one.")

    assert planned.slug == published.slug
    assert planned.slug.startswith("login-")


def test_a_publication_of_a_reserved_name_is_refused_whoever_calls(env: WorkerEnv) -> None:
    with pytest.raises(NameReserved, match="Nothing was kept"):
        publish_example(reserving(env), name="corp-login", repo_url=SQUATTER)
    assert not SkillEntry.objects.exists()


def test_an_operator_cannot_rename_a_skill_to_a_reserved_name_either(env: WorkerEnv) -> None:
    publish_example(env, name="login", repo_url=SQUATTER)
    with pytest.raises(SlugTaken, match=r"reserved for git\.corp\.example/platform"):
        rename_skill(reserving(env), "login", "corp-login", actor="op", reason="asked")
    assert SkillEntry.objects.get().slug == "login"


def test_the_longest_pattern_that_covers_a_name_counts(env: WorkerEnv) -> None:
    both = (ReservedName("corp-*", ("github.com/corp",)), ReservedName("corp-db-*", ("github.com/dba",)))
    strict = replace(env, policy=replace(env.policy, reserved_names=both))

    assert publish_example(strict, name="corp-db-dump", repo_url="https://github.com/dba/skills").slug == "corp-db-dump"
    with pytest.raises(NameReserved, match=r"github\.com/dba \(corp-db-\*\)"):
        publish_example(strict, name="corp-db-load", repo_url="https://github.com/corp/skills")


async def test_the_form_says_it_beside_the_skill_and_submits_nothing(async_client: AsyncClient, tmp_path: Path) -> None:
    with everywhere():
        listed = await async_client.post("/submit", {"repository_url": repository(tmp_path, skills("corp-login", "x"))})
        page = listed.content.decode()
        listing = re.search(r'name="listing" value="([^"]+)"', page)
        assert listing is not None
        forced = await async_client.post("/submit", {"listing": listing[1], "paths": ["corp-login"]})

    assert re.search(r'value="corp-login"[^>]* disabled', page)
    assert "is reserved here for git.corp.example/platform" in page
    assert forced.status_code == 422
    assert "is reserved here for git.corp.example/platform" in forced.content.decode()
    assert await nothing_is_written()


async def test_the_api_says_it(async_client: AsyncClient, tmp_path: Path) -> None:
    url = repository(tmp_path, skills("corp-login"))

    async def post(**body: Any) -> Any:
        return await async_client.post(
            "/api/v1/submissions", json.dumps({"repoUrl": url, **body}), content_type="application/json"
        )

    with everywhere():
        refused, looked = await post(), await post(dryRun=True)

    assert (refused.status_code, refused.json()["error"]) == (422, "name_reserved")
    assert "git.corp.example/platform" in refused.json()["message"]
    (would_be,) = looked.json()["skills"]
    assert (would_be["wouldBe"], would_be["plannedSlug"]) == ("refused", None)
    assert "git.corp.example/platform" in would_be["reserved"]
    assert await nothing_is_written()


def test_the_command_says_it(tmp_path: Path) -> None:
    url = repository(tmp_path, skills("corp-login"))
    said = io.StringIO()
    with everywhere():
        with pytest.raises(CommandError, match="Some skills were not submitted"):
            call_command("submit", url, stdout=said)
        looked = run("submit", url, "--dry-run")

    assert "reserved: The name corp-login is reserved here for git.corp.example/platform" in said.getvalue()
    assert "The name corp-login is reserved here for git.corp.example/platform" in looked.out
    assert not SubmissionEntry.objects.exists()


async def test_a_job_of_many_skills_counts_it(env: WorkerEnv, tmp_path: Path) -> None:
    strict = reserving(env)
    discovery = await discover(strict, repository(tmp_path, skills("corp-login", "one")))
    job = await writers.run(start_job, strict, discovery, source="test", actor="tester")
    job = await run_job(strict, job.id)
    progress = await progress_of(strict, job)

    assert progress.outcomes == {"reserved": 1, "created": 1}
    assert progress.standings == {"reserved": 1, "active": 1}


@pytest.mark.parametrize("service", ["git", "scm"])
def test_an_owner_below_a_service_of_a_host_is_not_called_so_either(env: WorkerEnv, service: str) -> None:
    address = f"https://git.example.net/{service}/corp-x/skills"
    assert "Names of publishers such as that" in why_reserved(reserving(env), address, "hello")
    assert why_reserved(reserving(env), f"https://git.example.net/{service}/other/skills", "hello") == ""
