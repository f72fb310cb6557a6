"""What the page of a skill says to help to decide, and the page that compares skills."""

from __future__ import annotations

import html
import re

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from marketplace.catalog import quarantine_skill
from marketplace.models import DownloadDay, SkillEntry, SkillVersion
from marketplace.skills.audience import show_to
from tests.marketplace.pages.page_factory import publish
from vskill.accounts.audiences import MEMBERS
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = " ".join(
    f"Step {number}: look at part {number * 7} of the report and write down what it says." for number in range(60)
)


async def page(path: str, status: int = 200) -> str:
    response = await AsyncClient().get(path)
    assert response.status_code == status, response.content.decode()[:500]
    text = re.sub(r"<[^>]+>", "", html.unescape(response.content.decode()))
    return re.sub(r"\s+", " ", text)


def _publish_three(env: WorkerEnv) -> None:
    publish(env, "report-reader", text=WORDS)
    publish(env, "report-fork", text=WORDS, repo_url="https://github.com/beta/skills")
    similar = WORDS.replace("Step 3:", "Step three:")
    publish(env, "report-variant", text=similar, repo_url="https://github.com/gamma/skills")
    skill = SkillEntry.objects.get(slug="report-fork")
    today = timezone.now().date()
    DownloadDay.objects.create(namespace=env.name, skill=skill, version="1.0.0", day=today, count=4321)


async def test_a_skill_names_what_it_is_a_copy_of_and_shows_its_downloads_and_what_it_touches(env: WorkerEnv) -> None:
    await sync_to_async(_publish_three)(env)
    fork = await page("/skills/report-fork")
    assert "A copy of report-reader of acme, published earlier" in fork
    assert "beta, who publishes here since" in fork
    assert re.search(r"report-variant gamma \d\d % ", fork)
    assert "Downloads by week, 26 weeks to" in fork
    assert "4,321" in fork
    # The weeks before its publication.
    assert "A dashed line stands where nothing is known." in fork
    assert "Network: nothing seen" in fork
    first = await page("/skills/report-reader")
    assert "A copy of" not in first
    assert "2 skills with the same or similar text" in first


def _publish_forks(env: WorkerEnv) -> None:
    """Publish a text, what keeps 28 of 30 of its steps, half of them, or a copy in one repository with another one."""

    def steps(changed: int) -> str:
        return "".join(
            f"Step {n}: look at part {n * 7} of the report and write down what it says about it to the others.\n"
            if n >= changed
            else " ".join(f"other{n}x{number}" for number in range(20)) + ".\n"
            for n in range(30)
        )

    publish(env, "steps", text=steps(0))
    publish(env, "steps-sibling", text=steps(2))
    publish(env, "steps-fork", text=steps(3), repo_url="https://github.com/beta/skills")
    publish(env, "steps-half", text=steps(12), repo_url="https://github.com/gamma/skills")


async def test_a_changed_skill_is_named_as_a_fork_of_the_earlier_one(env: WorkerEnv) -> None:
    await sync_to_async(_publish_forks)(env)
    fork = await page("/skills/steps-fork")
    assert re.search(r"Derived from steps-sibling of acme \(9\d % the same\), which was published earlier, ", fork)
    for other in ("steps", "steps-half", "steps-sibling"):
        assert "Derived from" not in await page(f"/skills/{other}")


def test_programs_are_told_what_a_skill_is_derived_from(env: WorkerEnv) -> None:
    _publish_forks(env)
    told = Client().get("/api/v1/skills/steps-fork/alike").json()
    assert {one: told["origin"][one] for one in ("relation", "slug", "sameText", "publishedEarlier")} == {
        "relation": "derivedFrom",
        "slug": "steps-sibling",
        "sameText": False,
        "publishedEarlier": True,
    }
    assert 0.9 < told["origin"]["share"] < 1
    assert [one["slug"] for one in told["items"]] == ["steps-sibling", "steps"]
    assert Client().get("/api/v1/skills/steps/alike").json()["origin"] is None
    text = SkillVersion.objects.get(name="steps").skill_md.split("---\n", 2)[2]
    publish(env, "steps-copy", text=text, repo_url="https://github.com/d/s")
    copied = Client().get("/api/v1/skills/steps-copy/alike").json()["origin"]
    assert (copied["relation"], copied["slug"], copied["share"]) == ("copyOf", "steps", 1)


async def test_a_fork_names_nothing_that_is_private_or_withdrawn(env: WorkerEnv) -> None:
    await sync_to_async(_publish_forks)(env)
    root = await sync_to_async(get_user_model()._default_manager.create_superuser)("root")
    member = AsyncClient()
    await sync_to_async(member.force_login)(root)

    async def origin() -> list[str]:
        shown = (await member.get("/skills/steps-fork")).content.decode()
        return re.findall(r"Derived from <a[^>]*>([^<]+)</a>", shown)

    assert await origin() == ["steps-sibling"]
    await sync_to_async(show_to)(env, "steps-sibling", MEMBERS, actor="test", reason="test")
    # The member sees it, and everybody sees the fork.
    assert await origin() == ["steps"]
    await sync_to_async(quarantine_skill)(env, "steps", actor="test", reason="test")
    assert await origin() == []


def test_what_a_skill_page_asks_the_database_is_bounded_however_many_are_alike(env: WorkerEnv) -> None:
    counts = []
    _publish_three(env)
    for more in range(2):
        for number in range(more * 8):
            publish(
                env, f"report-more-{number}", text=WORDS + f" And {number}.", repo_url=f"https://github.com/o{number}/s"
            )
        Client().get("/skills/report-reader")
        with CaptureQueriesContext(connection) as queries:
            assert Client().get("/skills/report-reader").status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]


async def test_skills_are_compared_side_by_side_and_what_is_not_there_is_named(env: WorkerEnv) -> None:
    await sync_to_async(_publish_three)(env)
    shown = await page("/compare?skill=report-reader&skill=report-fork&skill=report-varian&skill=report-fork")
    for words in ("acme", "beta", "No known pattern", "in the last 7 days", "Network"):
        assert words in shown
    assert (
        "report-varian: there is no published skill of this name. Compare with what is near to it: report-variant"
        in shown
    )
    assert "Add a skill" in shown
    assert "Nothing to compare was named" in await page("/compare", 400)
    assert "5 skills were named" in await page("/compare?" + "&".join(f"skill={one}" for one in "abcde"), 400)
    assert "no parameter 'skills'" in await page("/compare?skills=a", 400)
    assert "there is no published skill of this name" in await page("/compare?skill=nowhere", 404)


def _publish_two_versions(env: WorkerEnv) -> None:
    publish(env, capabilities=("filesystem_read", "network_egress"), files={"a.txt": b"1", "b.txt": b"1"})
    publish(env, capabilities=("filesystem_read", "shell_execution"), files={"a.txt": b"2", "c.txt": b"1"})
    publish(env, "unread", engines=(), capabilities=(), files={"a.txt": b"1"})
    publish(env, "unread", capabilities=("shell_execution",), files={"a.txt": b"2"})


async def test_a_version_says_what_it_can_do_that_the_one_before_could_not(env: WorkerEnv) -> None:
    await sync_to_async(_publish_two_versions)(env)
    shown = await page("/skills/release-notes")
    assert "1 file added, 1 changed, 1 removed" in shown
    assert re.search(
        r"It now also Runs commands or code ?No longer Uses the network, not known how ", shown.replace("  ", " ")
    )
    assert "— not known: one of both versions" in await page("/skills/unread")
    publisher = await page("/publishers/acme")
    assert "Skills first published by week, 26 weeks to" in publisher
    assert re.search(r"week from [^,]+, so far ?2 ?week from", publisher)
