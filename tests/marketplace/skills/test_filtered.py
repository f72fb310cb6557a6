"""What is counted of lists that no kept counts answer for, and what is said of it."""

from __future__ import annotations

import pytest

from marketplace.catalog import SkillFilters, list_skills
from marketplace.skills import filtered
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db


def test_a_long_list_of_two_filters_names_values_without_counts_and_a_short_one_counts_them(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        verdict, tags = ("notes", "pdf office") if number == 3 else ("clear", "pdf")
        publish_example(env, name=f"skill-{number}", verdict=verdict, metadata={"tags": tags})
    publish_example(env, name="other", metadata={"tags": "music"}, license="")
    monkeypatch.setattr(filtered, "MOST_FOUND", 2)
    pages = {
        verdict: list_skills(env, SkillFilters(verdict=verdict, tag="pdf"), count=True, facets=("tag", "license"))
        for verdict in ("clear", "notes")
    }
    assert {verdict: page.total for verdict, page in pages.items()} == {"clear": (3, False), "notes": (1, False)}
    assert pages["notes"].facets["license"] == [("MIT", 1, False)]
    # Those of the tag: nobody counted those of this list.
    assert pages["clear"].facets["license"] == [("MIT", None, False)]
    # Beside a chosen value, the counts of the others are kept.
    assert pages["clear"].facets["tag"] == [("pdf", 3, False), ("music", 1, False)]
    counted = list_skills(env, SkillFilters(tag="pdf"), facets=("verdict", "tag", "license")).facets
    assert counted["verdict"] == [("clear", 3, False), ("notes", 1, False)]
    assert counted["tag"] == [("pdf", 4, False), ("music", 1, False), ("office", 1, False)]
    assert counted["license"] == [("MIT", 4, False)]


def test_a_list_of_three_filters_is_counted_to_a_bound_and_its_facets_among_some(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filtered, "MOST_SAMPLED", 3)
    monkeypatch.setattr(filtered, "MOST_COUNTED", 4)
    for number in range(6):
        verdict = "clear" if number else "notes"
        publish_example(env, name=f"skill-{number}", metadata={"tags": "pdf"}, verdict=verdict)
    wanted = {"tag": "pdf", "license": "MIT"}
    page = list_skills(env, SkillFilters(**wanted, verdict="clear"), count=True, facets=("capability", "license"))
    assert (page.total, page.facets["capability"]) == ((4, True), [("shell", 3, True)])
    assert page.facets["license"] == [("MIT", 3, True)]
    page = list_skills(env, SkillFilters(**wanted, verdict="notes"), count=True, facets=("verdict", "capability"))
    assert (page.total, page.facets["capability"]) == ((1, False), [("shell", 1, False)])
