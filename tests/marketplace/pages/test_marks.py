"""Verdicts, capabilities and findings as pages show them: words beside every colour, hostile text as text."""

from __future__ import annotations

from typing import Any

import pytest
from django.template import Context, Template

from marketplace.capabilities import NOT_KNOWN, Capabilities
from marketplace.pages.wording import (
    CAPABILITIES,
    DEEDS,
    SEVERITIES,
    VERDICTS,
    published_words,
    verdict_words,
    version_words,
)
from vskill.templatetags.icons import DRAWINGS


def show(source: str, **context: Any) -> str:
    return Template("{% load marketplace_ui %}" + source).render(Context(context))


@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_verdict_is_shown_in_words_beside_an_icon(verdict: str) -> None:
    shown = show("{% verdict_badge verdict %}", verdict=verdict)
    assert VERDICTS[verdict].label in shown
    assert "<svg" in shown


def test_no_verdict_is_worded_as_a_promise() -> None:
    sentences = " ".join(words.label + " " + words.sentence for words in VERDICTS.values()).lower()
    assert not {"safe", "secure", "trusted", "malware-free"} & set(sentences.replace(".", " ").split())


@pytest.mark.parametrize("verdict", [None, "", "brand-new-verdict"])
def test_an_unknown_verdict_is_never_shown_as_a_good_one(verdict: str | None) -> None:
    assert verdict_words(verdict).tone == "idle"
    assert "No verdict recorded" in show("{% verdict_badge verdict %}", verdict=verdict)


def test_a_check_that_did_not_finish_is_neither_good_nor_bad() -> None:
    assert verdict_words("inconclusive").label == "Not scanned"
    assert verdict_words("INCONCLUSIVE").tone == "idle"


def test_every_word_has_an_icon_that_exists() -> None:
    words = [*VERDICTS.values(), *SEVERITIES.values(), *CAPABILITIES.values(), *DEEDS.values()]
    assert {word.icon for word in words} - set(DRAWINGS) == set()


def test_capabilities_that_nobody_knows_are_told_apart_from_none() -> None:
    assert "Not known" in show("{% capability_chips can %}", can=NOT_KNOWN)
    assert "Nothing that the checks recognised" in show("{% capability_chips can %}", can=Capabilities())
    in_part = show("{% capability_chips can %}", can=Capabilities(("shell_execution",), unread=True))
    assert in_part.index("Runs commands") < in_part.index("Also possible: unread files")


def test_a_capability_that_this_version_does_not_know_is_shown_by_its_own_name() -> None:
    shown = show("{% named_chips names %}", names=["shell_execution", "reads_<clipboard>"])
    assert "Runs commands" in shown
    assert "Reads &lt;clipboard&gt;" in shown


def test_a_finding_is_shown_whole_and_its_excerpt_as_text() -> None:
    finding = {
        "ruleId": "X-1",
        "severity": "high",
        "title": "Sends keys away",
        "file": "scripts/a b.py",
        "line": 7,
        "excerpt": "<script>alert(1)</script>",
        "why": "Keys open doors.",
        "advice": "Do not send them.",
        "engine": "skilltotal",
    }
    shown = show("{% findings_list findings '/skills/x/files/' '?version=1' %}", findings=[finding])
    for part in ("X-1", "High", "Sends keys away", "Keys open doors.", "Do not send them.", "skilltotal"):
        assert part in shown
    assert "<script>" not in shown
    assert 'href="/skills/x/files/scripts/a%20b.py?version=1#L7"' in shown


def test_a_finding_without_a_place_or_a_base_links_nowhere() -> None:
    shown = show("{% findings_list findings %}", findings=[{"ruleId": "X-2", "severity": "odd", "file": "a.py"}])
    assert "href" not in shown
    assert "Odd" in shown
    assert "X-2" in shown


def test_places_of_one_rule_are_shown_together_in_their_order() -> None:
    same = {"ruleId": "R-1", "severity": "high", "title": "Same", "why": "w", "advice": "a", "engine": "e"}
    findings = [
        {**same, "file": "a.py", "line": 1, "excerpt": "one"},
        {"ruleId": "R-2", "severity": "low", "title": "Other"},
        {**same, "file": "b.py", "line": 2, "excerpt": "two"},
    ]
    shown = show("{% findings_list findings %}", findings=findings)
    assert shown.count("<h3>Same</h3>") == 1
    assert "2 places" in shown
    assert shown.index("a.py:1") < shown.index("b.py:2") < shown.index("Other")


def test_notes_without_a_finding_are_said_to_be_about_what_it_asks_for() -> None:
    assert "asks for" in version_words("notes", []).sentence
    assert version_words("notes", [{"title": "Does it"}]) is VERDICTS["notes"]
    assert version_words("clear", []) is VERDICTS["clear"]
    assert "a reviewer" in version_words("notes", [{"title": "Does it"}, {"waived": "Accepted"}]).sentence


@pytest.mark.parametrize("verdict", ["held", "held_high", "inconclusive"])
def test_what_the_checks_held_is_shown_as_approved_where_it_is_published(verdict: str) -> None:
    assert "Approved" in show("{% verdict_badge verdict published=True %}", verdict=verdict)
    assert "Approved" not in show("{% verdict_badge verdict %}", verdict=verdict)
    assert "not published" not in published_words(verdict).sentence
    words = version_words(verdict, [{"title": "Does it"}], summary="Held by the checks, then approved: looked at.")
    assert words.sentence == ("Held by the checks, then approved: looked at. Read the findings before you install it.")
