"""What the page of a skill says to help to decide, and the page that compares skills."""

from __future__ import annotations

import html
import re

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from marketplace.models import DownloadDay, SkillEntry
from tests.marketplace.pages.page_factory import publish
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
    assert "report-varian: there is no published skill of this name. Near to it: report-variant" in shown
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
    assert re.search(r"It now also Runs commands ?No longer Uses the network ", shown.replace("  ", " "))
    assert "— not known: one of both versions" in await page("/skills/unread")
    publisher = await page("/publishers/acme")
    assert "Skills first published by week, 26 weeks to" in publisher
    assert re.search(r"week from [^,]+, so far ?2 ?week from", publisher)
