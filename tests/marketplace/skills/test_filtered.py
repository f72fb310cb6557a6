"""What is counted of lists that no kept counts answer for, and what is said of it."""

from __future__ import annotations

import pytest

from marketplace.catalog import SkillFilters, list_skills
from marketplace.skills import filtered
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db


def test_a_long_list_that_is_filtered_names_tags_without_counts_and_a_short_one_counts_them(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        verdict, tags = ("notes", "office") if number == 3 else ("clear", "pdf")
        publish_example(env, name=f"skill-{number}", verdict=verdict, metadata={"tags": tags})
    monkeypatch.setattr(filtered, "MOST_FOUND", 2)
    found = {
        verdict: list_skills(env, SkillFilters(verdict=verdict), facets=("tag", "license")).facets
        for verdict in ("clear", "notes")
    }
    assert found["notes"] == {"tag": [("office", 1, False)], "license": [("MIT", 1, False)]}
    # Of all skills: nobody counted those of this list.
    assert found["clear"] == {"tag": [("pdf", None, False), ("office", None, False)], "license": [("MIT", None, False)]}
    # The other facets of a list with a tag are counted, and so is a tag beside it.
    counted = list_skills(env, SkillFilters(tag="pdf"), facets=("verdict", "tag", "license")).facets
    assert counted["verdict"] == [("clear", 3, False)]
    assert counted["tag"] == [("pdf", 3, False), ("office", 1, False)]
    assert counted["license"] == [("MIT", 3, False)]


def test_a_list_of_a_tag_has_its_true_length_and_its_facets_say_that_they_were_counted_among_some(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filtered, "MOST_SAMPLED", 3)
    monkeypatch.setattr(filtered, "MOST_COUNTED", 4)
    for number in range(6):
        verdict = "clear" if number else "notes"
        publish_example(env, name=f"skill-{number}", metadata={"tags": "pdf"}, verdict=verdict)
    page = list_skills(env, SkillFilters(tag="pdf"), count=True, facets=("verdict", "license", "tag"))
    assert page.total == (6, False)
    assert page.facets["license"] == [("MIT", 3, True)]
    assert sum(one.number or 0 for one in page.facets["verdict"]) == 3
    assert page.facets["tag"] == [("pdf", 6, False)]
    # A pair is counted further than its facets are, and not to its end.
    page = list_skills(env, SkillFilters(tag="pdf", verdict="clear"), count=True, facets=("license",))
    assert (page.total, page.facets["license"]) == ((4, True), [("MIT", 3, True)])
    page = list_skills(env, SkillFilters(tag="pdf", verdict="notes"), count=True, facets=("verdict", "license"))
    assert (page.total, page.facets["license"]) == ((1, False), [("MIT", 1, False)])
    assert {one.or_more for one in page.facets["verdict"]} == {True}
