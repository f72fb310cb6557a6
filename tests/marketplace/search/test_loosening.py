"""A search that finds nothing is asked more loosely: other endings, other spellings, all words but one."""

from __future__ import annotations

import pytest

from marketplace.models import SkillEntry
from marketplace.skills.answers import search_sync
from marketplace.skills.listing import list_skills
from marketplace.skills.moderation import quarantine_skill
from marketplace.skills.search import Hits
from marketplace.skills.visibility import listed_skills
from tests.marketplace.pages.page_factory import publish
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)


def searched(env: WorkerEnv, query: str) -> str:
    """Return what is searched for in place of a query, ``*`` for all words but one of it, and '' for what was typed."""
    asked = Hits(listed_skills(SkillEntry.objects.using(env.database)), query, namespace=env.name).asked
    return f"{'*' if asked.lacks_one else ''}{' '.join(asked.terms)}" if asked.loose else ""


def test_the_strictest_search_that_finds_something_is_taken(env: WorkerEnv) -> None:
    publish(
        env, "extract-invoices", description="Read the totals of each query in a workflow.", metadata={"tags": "sums"}
    )
    publish(env, "release-notes", description="Summarise a changelog, with the history.")
    asked = {
        # Other endings.
        "queries workflows": "quer workflow",
        "extracting invoices": "extract invoice",
        # Other spellings.
        "extrcat": "extract",
        "extract invoces": "extract invoices",
        "relaese notes": "release notes",
        "TOTALS invioces": "totals invoices",
        # Those of other words than names.
        "changlog": "changelog",
        "extract invoces totls": "extract invoices totals",
        # What is near to nothing is left out, where it is one word.
        "extract totals kubernetes": "extract totals",
        # Of two words, one is half of what was meant.
        "extract kubernetes": "",
        "kubernetes": "",
        "extract kubernetes docker": "",
        # No skill has all of these.
        "extract totals history": "*extract total history",
        # Found as it is.
        "extract": "",
        "": "",
        '" OR * NEAR(': "",
        "e x t r a c t": "",
    }
    assert {query: searched(env, query) for query in asked} == asked


def test_what_has_more_of_the_words_in_its_name_comes_first(env: WorkerEnv) -> None:
    publish(env, "invoice-history", description="Totals.")
    publish(env, "release-notes", description="Extract the history.")
    found = [hit.skill.slug for hit in search_sync(env, "extract invoice history")]
    assert found == ["invoice-history", "release-notes"]
    assert list_skills(env).loosened is None


def test_what_is_withheld_loosens_nothing(env: WorkerEnv) -> None:
    publish(env, "extract-invoices")
    assert searched(env, "extrcat") == "extract"
    quarantine_skill(env, "extract-invoices", reason="test", actor="test")
    assert searched(env, "extrcat") == ""
    assert search_sync(env, "extrcat") == []
