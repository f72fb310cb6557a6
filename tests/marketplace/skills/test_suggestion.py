"""What a search without hits may have meant: misspelt words as names here spell them, and only what is found."""

from __future__ import annotations

import pytest

from marketplace.skills.moderation import quarantine_skill
from marketplace.skills.suggestion import did_you_mean
from tests.marketplace.pages.page_factory import publish
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)


def test_misspelt_words_are_replaced_and_the_others_stay(env: WorkerEnv) -> None:
    publish(env, "extract-invoices", description="Read the totals of invoices.")
    publish(env, "release-notes", description="Summarise a history.")
    suggestions = {
        "extrcat": "extract",
        "extract invoces": "extract invoices",
        "relaese notes": "release notes",
        "TOTALS invioces": "totals invoices",
        "extracct": "extract",
        # Found as it is.
        "extract": "",
        # Near to nothing.
        "kubernetes": "",
        "extract kubernetes": "",
        # Each is a word here, but no skill has both.
        "extract notes": "",
        "invoces notes": "",
        "": "",
        '" OR * NEAR(': "",
        "e x t r a c t": "",
    }
    assert {query: did_you_mean(env, query) for query in suggestions} == suggestions


def test_what_is_withheld_is_never_suggested(env: WorkerEnv) -> None:
    publish(env, "extract-invoices")
    assert did_you_mean(env, "extrcat") == "extract"
    quarantine_skill(env, "extract-invoices", reason="test", actor="test")
    assert did_you_mean(env, "extrcat") == ""
