"""Choosing skills to compare by ticking them, and what their comparison says of each and of their differences."""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from django.test import Client

from marketplace.provenance.signing import sign_published
from tests.marketplace.pages.page_factory import publish
from tests.marketplace.provenance.signing_registry import signing_with
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)


def page(path: str, status: int = 200) -> str:
    answer = Client().get(path)
    assert answer.status_code == status, answer.content.decode()[:500]
    return answer.content.decode()


def rows(shown: str) -> dict[str, tuple[str, bool]]:
    """Return the words of each row of the table by what it is called, and whether it is marked."""
    found = {}
    for classes, name, cells in re.findall(r'<tr([^>]*)><th scope="row">(.*?)</th>(.*?)</tr>', shown, re.DOTALL):
        words = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", cells))).strip()
        label = re.sub(r"<[^>]+>", "", name).strip()
        marked = "differs" in classes
        assert label.endswith("differs") is marked
        found[label.removesuffix("differs").strip()] = words, marked
    return found


def ticked(shown: str) -> list[str]:
    """Return what the check boxes of the form that leads to the comparison stand for."""
    assert '<form class="row compare-bar" id="to-compare" action="/compare" method="get">' in shown
    return re.findall(r'<input type="checkbox" name="skill" value="([^"]+)" form="to-compare">', shown)


def test_skills_of_a_table_and_of_a_search_are_ticked_and_compared_without_a_script(env: WorkerEnv) -> None:
    for name in ("one-skill", "two-skill", "other"):
        publish(env, name, repo_url=f"https://github.com/{name}/skills")
    assert ticked(page("/skills?view=table")) == ["other", "two-skill", "one-skill"]
    found = ticked(page("/skills?q=skill"))
    assert sorted(found) == ["one-skill", "other", "two-skill"]
    assert 'id="to-compare"' not in page("/skills")
    assert 'id="to-compare"' not in page("/skills?q=zzzzzz")
    compared = page(f"/compare?{urlencode({'skill': found[:2]}, doseq=True)}")
    assert compared.count('scope="col"') == 2
    assert "Tick one to four skills in a list" in page("/compare", 400)
    assert "A comparison has at most 4" in page(f"/compare?{urlencode({'skill': list('abcde')}, doseq=True)}", 400)


def test_a_name_that_is_typed_wrong_leads_to_the_comparison_with_what_is_near(env: WorkerEnv) -> None:
    publish(env, "release-notes")
    publish(env, "csv-tidy")
    shown = page("/compare?skill=release-notes&skill=csv-tydi")
    assert '<a href="/compare?skill=release-notes&amp;skill=csv-tidy">csv-tidy</a>' in shown
    assert '<a href="/compare?skill=csv-tidy">csv-tidy</a>' in page("/compare?skill=csv-tydi", 404)
    assert rows(page("/compare?skill=release-notes&skill=CSV+Tidy"))["Licence"] == ("MIT MIT", False)


def test_a_comparison_has_the_provenance_of_each_and_marks_what_differs(tmp_path: Path) -> None:
    with signing_with(tmp_path / "keys.pem") as env:
        first = publish(env, "first-one", license="", capabilities=("network_egress",))
        sign_published(env)
        publish(env, "second-one", repo_url="https://github.com/beta/skills", source_ref="refs/tags/v2")
        publish(env, "third-one")
        shown = page("/compare?skill=first-one&skill=second-one")
    told = rows(shown)
    assert re.fullmatch(r"[0-9a-f]+ [0-9a-f]+ tag v2", told["Commit"][0])
    assert re.fullmatch(r"\d+ \w+ \d{4}, [\d:]+ UTC key [0-9a-f]+ — not yet", told["Signed"][0])
    assert re.fullmatch(r"acme publishes here since .+ beta publishes here since .+", told["Publisher"][0])
    assert told["Licence"] == ("None is stated MIT", True)
    marked = [name for name, (_words, differs) in told.items() if differs]
    assert marked == ["Network", "Publisher", "Licence", "Signed"]
    assert "They differ in:</b> Publisher, Signed, Licence, Network." in shown
    assert first.slug == "first-one"

    alike = page("/compare?skill=second-one&skill=third-one&skill=third-one")
    assert [name for name, (_words, differs) in rows(alike).items() if differs] == ["Publisher"]
    alone = page("/compare?skill=third-one")
    assert "differ" not in alone
