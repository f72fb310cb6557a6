"""What a skill can do is one set: its page, the table, the filter, the API, the map and the counts say the same."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any, Final

import pytest
from django.apps import apps
from django.db import connections
from django.test import Client

from marketplace.catalog import SkillFilters
from marketplace.models import HistoryEvent, SkillEntry
from marketplace.models.derived import SkillFacet
from marketplace.skills.capability_names import asked_names
from marketplace.skills.capability_renewal import wrong_capabilities
from marketplace.skills.count_check import wrong_counts
from marketplace.skills.listing import facet_counts
from marketplace.skills.store import write_capabilities
from tests.marketplace.factories import publish_example
from tests.marketplace.pages.page_factory import contract
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
MIGRATION: Final[Any] = import_module("marketplace.migrations.0038_one_set_of_capabilities")


def deeds(*names: str) -> dict[str, Any]:
    """Return a contract of a skill that does this."""
    return contract(does=[{"name": name, "declared": "", "places": [["SKILL.md", 6]]} for name in names])


def counted(env: WorkerEnv) -> dict[str, int | None]:
    """Return how many skills have each capability, by the counts, which agree with the skills."""
    assert wrong_counts(env) == []
    return {one.value: one.number for one in facet_counts(env, SkillFilters())["capability"]}


def words(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.content.decode()[:500]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


@pytest.mark.parametrize(
    ("capabilities", "contract", "names"),
    [
        ((), None, ()),
        (("shell_execution", "dynamic_code_execution"), None, ("executes",)),
        (("shell_execution",), deeds("executes"), ("executes",)),
        (("shell_execution",), deeds("reads_files"), ("reads_files", "executes")),
        (("network_egress",), None, ("network_egress",)),
        (("network", "network_egress"), None, ("sends",)),
        (("network_egress",), deeds("downloads"), ("downloads",)),
        (("network_egress",), deeds("reads_files"), ("reads_files", "network_egress")),
        (("brand_new", "mcp_tools_detected"), {"of": "an earlier release"}, ("brand_new", "mcp_tools_detected")),
        (("executes", "sends"), None, ("executes", "sends")),
    ],
)
def test_each_thing_is_named_once_by_engines_and_contract_together(
    capabilities: tuple[str, ...], contract: Any, names: tuple[str, ...]
) -> None:
    assert asked_names(capabilities, contract) == names


def test_a_deed_that_no_engine_named_is_listed_filtered_and_counted_like_any_other(
    env: WorkerEnv, client: Client
) -> None:
    publish_example(env, name="by-contract", capabilities=("mcp_tools_detected",), contract=deeds("executes"))
    publish_example(env, name="by-engine", capabilities=("shell_execution",))
    publish_example(env, name="neither", capabilities=())
    assert "Asks for Runs commands or code Brings tools" in words(client, "/skills/by-contract")
    table = words(client, "/skills?view=table").split("by-contract", 1)[1]
    assert "Runs commands or code Brings tools" in table
    assert counted(env) == {"executes": 2, "mcp_tools_detected": 1}
    # By the name of an engine as well, as in links of earlier releases.
    for name in ("executes", "shell_execution"):
        shown = words(client, f"/skills?capability={name}")
        assert "Asks for: Runs commands or code" in shown
        assert ("by-contract" in shown, "by-engine" in shown, "neither" in shown) == (True, True, False)
        told = client.get(f"/api/v1/skills?capability={name}").json()
        assert {one["slug"] for one in told["items"]} == {"by-contract", "by-engine"}
        found = client.get(f"/api/v1/search?q=contract&capability={name}").json()
        assert [one["slug"] for one in found["results"]] == ["by-contract"]


def test_a_skill_says_what_its_latest_version_can_do(env: WorkerEnv) -> None:
    publish_example(env, capabilities=(), contract=deeds("executes"))
    assert counted(env) == {"executes": 1}
    publish_example(env, body="Second.", capabilities=("filesystem_write",), contract=deeds("sends"))
    assert counted(env) == {"sends": 1, "filesystem_write": 1}


def as_before(env: WorkerEnv) -> SkillEntry:
    """Publish a skill, and let it be listed as an earlier release did: by the names of engines alone."""
    common: dict[str, Any] = {"metadata": {"tags": "pdf office"}, "compatibility": "Made for Codex"}
    publish_example(env, name="other", capabilities=("shell",), **common)
    engines = ("shell_execution", "filesystem_write")
    made = publish_example(env, capabilities=engines, contract=deeds("executes"), **common)
    row: SkillEntry = SkillEntry.objects.get(slug=made.slug)
    write_capabilities(env, row, engines)
    row.refresh_from_db()
    assert wrong_capabilities(env) == [row.pk]
    assert counted(env) == {"shell": 1, "shell_execution": 1, "filesystem_write": 1}
    return row


def test_the_migration_renews_the_skills_of_an_earlier_release_with_facets_and_counts(env: WorkerEnv) -> None:
    row, events = as_before(env), HistoryEvent.objects.count()
    for _twice in range(2):
        MIGRATION.renew(apps, connections[env.database].schema_editor())
    after = SkillEntry.objects.get(pk=row.pk)
    assert after.capabilities == ("executes", "filesystem_write")
    assert (after.version, after.changed_at) == (row.version + 1, row.changed_at)
    assert counted(env) == {"shell": 1, "executes": 1, "filesystem_write": 1}
    facets = SkillFacet.objects.filter(skill=row, kind="capability").values_list("value", flat=True)
    assert set(facets) == set(after.capabilities)
    assert (wrong_capabilities(env), HistoryEvent.objects.count()) == ([], events)


def test_the_migration_leaves_what_cannot_be_read(env: WorkerEnv) -> None:
    row = as_before(env)
    SkillEntry.objects.using(env.database).filter(pk=row.pk).write_row(value="{not json")
    MIGRATION.renew(apps, connections[env.database].schema_editor())
    assert SkillEntry.objects.get(pk=row.pk).value == "{not json"
    assert wrong_capabilities(env) == []
