"""Skills are filtered by the agents that they state they are made for, and no agent is guessed."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any, Final

import pytest
from django.apps import apps
from django.db import connections, transaction
from django.test import Client

from marketplace.catalog import SkillFilters, list_skills
from marketplace.models.derived import SearchDocument, SkillFacet
from marketplace.records import SkillRecord
from marketplace.skills.agents import agents_of
from marketplace.skills.count_check import wrong_counts
from marketplace.skills.search_check import wrong_documents
from marketplace.skills.store import Event, locked_skill, note
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv

MIGRATION: Final[Any] = import_module("marketplace.migrations.0017_withdrawals_and_agents")


@pytest.mark.parametrize(
    ("compatibility", "agents"),
    [
        ("", ()),
        ("Designed for Claude Code (or similar products)", ("claude-code",)),
        ("claude-code, opencode", ("claude-code", "opencode")),
        ("Cursor", ("cursor",)),
        ("Works with Codex CLI and GitHub Copilot. Requires git.", ("codex", "github-copilot")),
        # What is not stated of the skill is left out.
        ("Requires git, docker, jq, and access to the internet", ()),
        ("Needs a database cursor and a factory", ()),
        ("Does not work with Codex; made for OpenCode", ("opencode",)),
        ("Claude Code users may ask for it", ()),
        ("Requires Python 3.11", ()),
    ],
)
def test_the_agents_that_a_compatibility_names(compatibility: str, agents: tuple[str, ...]) -> None:
    assert agents_of(SkillRecord(slug="x", name="x", compatibility=compatibility)) == agents


@pytest.mark.parametrize(
    ("path", "agents"),
    [
        (".claude/skills/pdf", ("claude-code",)),
        ("tools/.codex/skills/pdf", ("codex",)),
        (".agents/skills/pdf", ()),
        ("skills/claude/pdf", ()),
        (".github/workflows/skills", ()),
        ("", ()),
    ],
)
def test_the_agent_whose_folder_a_skill_lies_in(path: str, agents: tuple[str, ...]) -> None:
    assert agents_of(SkillRecord(slug="x", name="x", skill_path=path)) == agents
    assert agents_of(SkillRecord(slug="x", name="x", skill_path="x", also_at=(path,))) == agents


@pytest.mark.django_db(transaction=True)
def test_lists_of_pages_api_and_feeds_are_filtered_by_agent_licence_and_tag(client: Client, env: WorkerEnv) -> None:
    details: dict[str, Any] = {"license": "Zlib", "metadata": {"tags": "office"}}
    publish_example(env, name="one", skill_path=".codex/skills/one", **details)
    publish_example(env, name="two", skill_path="skills/two", compatibility="Requires Claude Code")
    shown = client.get("/skills/one").content.decode()
    for query, wanted in {
        "agent=codex": "one",
        "agent=claude-code": "two",
        "agent=goose": "",
        "agent=codex&q=two": "",
        "license=Zlib": "one",
        "tag=office&q=says": "one",
    }.items():
        page = client.get(f"/skills?{query}").content.decode()
        assert [name for name in ("one", "two") if f'href="/skills/{name}"' in page] == [wanted][: bool(wanted)], query
        api = client.get(f"/api/v1/skills?{query}").json()["items"]
        assert [item["slug"] for item in api] == [wanted][: bool(wanted)], query
        feed = client.get(f"/feeds/new.atom?{query}").content.decode()
        assert ("/skills/one" in feed, "/skills/two" in feed) == (wanted == "one", wanted == "two"), query
        # The page of a skill leads to the lists that it is in by one of these.
        assert (f'href="/skills?{query}"' in shown) == (wanted == "one" and "&" not in query), query
    assert "Made for: codex" in client.get("/skills?agent=codex").content.decode()
    for place in ("/skills", "/api/v1/skills", "/feeds/new.atom"):
        refused = client.get(f"{place}?agent=hal")
        assert refused.status_code == 400
        assert "github-copilot" in refused.content.decode()


@pytest.mark.django_db(transaction=True)
def test_what_the_release_before_published_gets_its_agents_and_parts(env: WorkerEnv) -> None:
    publish_example(env, name="one", skill_path=".codex/skills/one", description="แปลงเอกสาร")
    publish_example(env, name="two", description="Plain.")
    SkillFacet.objects.filter(kind=SkillFacet.AGENT).delete()
    SearchDocument.objects.filter(skill__slug="one").update(description="แปลงเอกสาร")
    assert len(wrong_documents(env)) == 1
    for _twice in range(2):
        MIGRATION.fill(apps, connections[env.database].schema_editor())
    assert list(SkillFacet.objects.filter(kind="agent").values_list("skill__slug", "value")) == [("one", "codex")]
    assert wrong_documents(env) == []


@pytest.mark.django_db
def test_another_place_of_a_skill_can_say_one_more_agent(env: WorkerEnv) -> None:
    publish_example(env, name="pdf-tools")
    with transaction.atomic():
        row = locked_skill(env, "pdf-tools")
        note(env, row, replace(row.record, also_at=(".claude/skills/pdf-tools",)), Event("noted", "test"))
    for query in ("", "pdf"):
        page = list_skills(env, SkillFilters(agent="claude-code", query=query), count=True)
        assert ([one.slug for one in page.skills], page.total) == (["pdf-tools"], (1, False))
    publish_example(env, name="pdf-tools", body="Again.")
    assert wrong_counts(env) == []
