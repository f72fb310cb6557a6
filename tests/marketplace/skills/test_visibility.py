"""Every way of withdrawing a skill, against every surface on which it could still show."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test import Client

from marketplace.catalog import (
    SkillFilters,
    delete_skill,
    enumerate_published_skills,
    facet_counts,
    quarantine_skill,
    quarantine_version,
    rename_skill,
    yank_version,
)
from marketplace.crawlers.sitemap import PART
from marketplace.models import SkillEntry
from marketplace.skills.visibility import listed_skills
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

# A word that occurs only in this skill.
SECRET = "zanzibar"
SLUG = "withdrawn-skill"
WHO = {"actor": "test", "reason": "test"}

# Addresses that show a skill by its name.
BY_NAME = (
    f"/skills/{SLUG}",
    f"/skills/{SLUG}/scan",
    f"/skills/{SLUG}/files/SKILL.md",
    f"/skills/{SLUG}/report",
    f"/api/v1/skills/{SLUG}",
    f"/api/v1/skills/acme/skills/{SLUG}",
    f"/api/v1/skills/{SLUG}/versions",
    "/skills/old-name",
    "/api/v1/skills/old-name",
)
# A withheld skill is described here with the reason alone, so that clients go on past it.
DETAIL = (f"/api/v1/skills/{SLUG}", f"/api/v1/skills/acme/skills/{SLUG}", "/api/v1/skills/old-name")
# Addresses that offer the latest version.
LATEST = (
    f"/api/v1/skills/{SLUG}/verify",
    f"/api/v1/skills/{SLUG}/moderation",
    f"/api/v1/skills/{SLUG}/install",
    f"/api/v1/skills/{SLUG}/file?path=SKILL.md",
    f"/api/v1/download?slug={SLUG}",
    f"/skills/{SLUG}/download/latest.zip",
    f"/skills/{SLUG}/.well-known/agent-skills/index.json",
    f"/acme/{SLUG}/.well-known/agent-skills/index.json",
    f"/acme@{SLUG}/.well-known/agent-skills/index.json",
    f"/skills/{SLUG}/card",
    f"/skills/{SLUG}/marketplace.json",
    f"/git/acme/{SLUG}/info/refs?service=git-upload-pack",
)
# Addresses that name a version exactly.
EXACT = (
    f"/skills/{SLUG}?version=1.0.0",
    f"/api/v1/skills/{SLUG}/versions/1.0.0",
    f"/api/v1/skills/{SLUG}/file?path=SKILL.md&version=1.0.0",
    f"/api/v1/skills/{SLUG}/verify?version=1.0.0",
    f"/api/v1/download?slug={SLUG}&version=1.0.0",
    f"/skills/{SLUG}/badge.svg?version=1.0.0",
    f"/skills/{SLUG}/download/1.0.0.zip",
    f"/skills/{SLUG}/download/1.0.0.tar.gz",
    f"/skills/{SLUG}/versions/1.0.0/.well-known/agent-skills/index.json",
)
# Addresses that list what is published.
LISTS = (
    "/",
    "/skills",
    f"/skills?q={SECRET}",
    "/publishers/acme",
    "/api/v1/skills",
    f"/api/v1/search?q={SECRET}",
    f"/api/v1/skills/search?q={SECRET}",
    f"/api/search?q={SECRET}",
    "/feeds/new.atom",
    "/sitemap/PART",
    "/feeds/updated.atom",
    f"/feeds/new.atom?q={SECRET}",
    "/publishers/acme/feed.atom",
    "/publishers/acme/.well-known/agent-skills/index.json",
    "/acme/.well-known/agent-skills/index.json",
    "/.well-known/agent-skills/index.json",
    "/marketplace.json",
    "/publishers/acme/marketplace.json",
)

Withdraw = Callable[[WorkerEnv], object]
STATES: dict[str, Withdraw] = {
    "quarantined": lambda env: quarantine_skill(env, SLUG, **WHO),
    "deleted": lambda env: delete_skill(env, SLUG, **WHO),
    "only version quarantined": lambda env: quarantine_version(env, SLUG, "1.0.0", **WHO),
    "only version yanked": lambda env: yank_version(env, SLUG, "1.0.0", **WHO),
}


@pytest.fixture(autouse=True)
def _published(env: WorkerEnv) -> None:
    publish_example(
        env, name="old-name", description=f"About {SECRET}.", declared_version="1.0.0", metadata={"tags": SECRET}
    )
    rename_skill(env, "old-name", SLUG, **WHO)
    publish_example(env, name="neighbour", description="Stays.")


def placed(address: str) -> str:
    """Return an address with the part of the sitemap that the skill is in: numbers of rows go on between tests."""
    return address.replace("PART", str(SkillEntry.objects.get(slug=SLUG).pk // PART))


def shows(client: Client, address: str) -> bool:
    """Return whether an address answers with the skill or a part of it."""
    answer = client.get(placed(address), follow=True)
    return answer.status_code == 200 and (SLUG.encode() in answer.content or SECRET.encode() in answer.content)


def fetches(client: Client, address: str) -> bool:
    return client.get(address, follow=True).status_code == 200


@pytest.mark.parametrize("address", [*BY_NAME, *EXACT, *LATEST])
def test_a_published_skill_is_there(client: Client, address: str) -> None:
    assert fetches(client, address)


@pytest.mark.parametrize("address", [one for one in LISTS if not one.startswith("/.well-known")])
def test_a_published_skill_is_listed(client: Client, address: str) -> None:
    assert shows(client, address)


@pytest.mark.parametrize("state", STATES)
def test_no_list_shows_a_withdrawn_skill(client: Client, env: WorkerEnv, state: str) -> None:
    STATES[state](env)
    # The page repeats the query, so only the slug must be absent.
    still = [one for one in LISTS if SLUG.encode() in client.get(placed(one), follow=True).content]
    assert still == []
    assert all(SECRET not in json.dumps(counts) for counts in facet_counts(env, SkillFilters()).values())


@pytest.mark.parametrize("state", ["quarantined", "deleted"])
def test_no_address_gives_anything_of_a_withheld_skill(client: Client, env: WorkerEnv, state: str) -> None:
    STATES[state](env)
    closed = [one for one in (*BY_NAME, *LATEST, *EXACT) if one not in DETAIL]
    assert [one for one in closed if fetches(client, one) or shows(client, one)] == []
    for address in DETAIL:
        body = client.get(address).json()
        assert (body["latestVersion"], body["blocked"], body["skill"]["isBlocked"]) == (None, True, True)
        assert body["skill"]["summary"].endswith("The reason given: test")
        assert "content" not in body["skill"]
    assert [skill.slug for skill in async_to_sync(enumerate_published_skills)(env).skills] == ["neighbour"]


@pytest.mark.parametrize("state", ["quarantined", "deleted"])
def test_the_refusal_of_a_withheld_skill_tells_nothing_of_it(client: Client, env: WorkerEnv, state: str) -> None:
    STATES[state](env)
    assert [one for one in (*BY_NAME, *LATEST, *EXACT) if SECRET.encode() in client.get(one, follow=True).content] == []


def test_a_quarantined_version_is_given_to_nobody(client: Client, env: WorkerEnv) -> None:
    STATES["only version quarantined"](env)
    assert [one for one in (*LATEST, *EXACT) if fetches(client, one)] == []


def test_a_yanked_version_is_given_to_who_asks_for_its_number(client: Client, env: WorkerEnv) -> None:
    STATES["only version yanked"](env)
    assert [one for one in LATEST if fetches(client, one)] == []
    assert [one for one in EXACT if not fetches(client, one)] == []
    assert [one for one in BY_NAME if not fetches(client, one)] == []
    archive = client.get(f"/skills/{SLUG}/download/1.0.0.zip")
    assert archive.headers["Warning"] == '299 - "This version was yanked: test"'


@pytest.mark.parametrize("state", STATES)
def test_the_feed_of_withdrawals_says_that_it_is_withdrawn_and_nothing_of_it(
    client: Client, env: WorkerEnv, state: str
) -> None:
    assert SLUG.encode() not in client.get("/feeds/withdrawn.atom").content
    STATES[state](env)
    feed = client.get("/feeds/withdrawn.atom").content
    assert SLUG.encode() in feed
    assert b"The reason given: test" in feed
    assert SECRET.encode() not in feed


def test_a_neighbour_is_untouched(client: Client, env: WorkerEnv) -> None:
    for withdraw in STATES.values():
        withdraw(env)
    assert fetches(client, "/skills/neighbour")
    assert fetches(client, "/publishers/acme/.well-known/agent-skills/index.json")


@pytest.mark.postgres
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="of PostgreSQL's indexes")
def test_an_index_alone_tells_which_skills_are_listed(env: WorkerEnv) -> None:
    publish_example(env)
    listed = listed_skills(SkillEntry.objects.filter(namespace=env.name, pk__in=[1, 2]))
    with connection.cursor() as cursor:
        # Until then, the table has to be asked whether somebody still sees an older row.
        cursor.execute("VACUUM ANALYZE marketplace_skillentry")
    with transaction.atomic(), connection.cursor() as cursor:
        for way in ("seqscan", "bitmapscan"):
            cursor.execute(f"SET LOCAL enable_{way} TO off")
        plan = listed.values_list("pk", "verdict", "publisher_handle", "license").explain()
    assert "Index Only Scan using marketplace_skillentry_listed" in plan
