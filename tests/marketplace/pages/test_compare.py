"""Choosing skills to compare by ticking them, and what their comparison says of each and of their differences."""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import pytest
from django.test import Client

from marketplace.catalog import rename_skill
from marketplace.pages import lists
from marketplace.provenance.signing import sign_published
from tests.marketplace.pages.page_factory import publish
from tests.marketplace.provenance.signing_registry import signing_with
from vskill.accounts.audiences import MEMBERS
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


def ticks(shown: str) -> dict[str, tuple[bool, str]]:
    """Return of each skill that can be ticked whether it is, and the address of the list in which that is changed."""
    found = re.findall(r'<a class="tick" id="tick-([^"]+)" href="(\?[^"#]*)#tick-\1" rel="nofollow"(.*?)>', shown)
    return {slug: ("aria-current" in more, f"/skills{html.unescape(href)}") for slug, href, more in found}


def chosen(shown: str) -> dict[str, str]:
    """Return the skills that are said to be ticked, each with the address of the list without it."""
    found = re.findall(r'<a class="chip" href="(\?[^"]*)#chosen" rel="nofollow">(\S+) ', shown)
    return {name: f"/skills{html.unescape(href)}" for href, name in found}


def leads(shown: str) -> list[str]:
    """Return what the links and forms of a list keep of the skills that are ticked, for each of them."""
    results = re.search(r'<form class="input-row\b.*</main>', shown, re.DOTALL)
    assert results
    links = re.findall(r'href="(\?[^"]*)"', re.sub(r'<a class="(?:tick|chip)[^>]*>', "", results[0]))
    told = [",".join(parse_qs(html.unescape(one[1:])).get("compare", [])) for one in links]
    forms = re.findall(r"<form.*?</form>", results[0], re.DOTALL)
    return told + [",".join(re.findall(r'type="hidden" name="compare" value="([^"]*)"', one)) for one in forms]


def test_skills_of_a_table_and_of_a_search_are_ticked_and_compared_without_a_script(env: WorkerEnv) -> None:
    for name in ("one-skill", "two-skill", "other"):
        publish(env, name, repo_url=f"https://github.com/{name}/skills")
    offered = ticks(page("/skills?view=table"))
    assert list(offered) == ["other", "two-skill", "one-skill"]
    assert {ticked for ticked, _href in offered.values()} == {False}
    assert sorted(ticks(page("/skills?q=skill"))) == ["one-skill", "other", "two-skill"]
    assert [ticks(page("/skills")), ticks(page("/skills?q=zzzzzz"))] == [{}, {}]

    one = page(offered["other"][1])
    assert chosen(one) == {"other": "/skills?view=table"}
    assert ticks(one)["other"] == (True, "/skills?view=table")
    both = page(ticks(one)["one-skill"][1])
    assert list(chosen(both)) == ["other", "one-skill"]
    assert list(chosen(page(chosen(both)["other"]))) == ["one-skill"]
    [compared] = re.findall(r'<a class="button" href="(/compare[^"]*)" rel="nofollow">Compare 2</a>', both)
    shown = page(html.unescape(compared))
    assert shown.count('scope="col"') == 2
    assert '<a href="/skills?view=table&amp;compare=other&amp;compare=one-skill">Tick others' in shown
    assert "Tick one to four skills in a list" in page("/compare", 400)
    assert "A comparison has at most 4" in page(f"/compare?{urlencode({'skill': list('abcde')}, doseq=True)}", 400)


def test_ticks_stay_on_every_way_from_a_list_to_another(env: WorkerEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "PAGE_SIZE", 2)
    for name in ("one-skill", "two-skill", "red-skill", "new-skill", "odd-skill"):
        publish(env, name, metadata={"tags": " ".join(f"tag{number}" for number in range(12))})
    kept = "compare=one-skill&compare=two-skill"
    for query in ("", "q=skill&", "view=table&verdict=clear&sort=name&", "q=zzzzzz&tag=tag99&", "publisher=acmee&"):
        shown = page(f"/skills?{query}{kept}")
        assert set(leads(shown)) == {"one-skill,two-skill"}, query
        assert list(chosen(shown)) == ["one-skill", "two-skill"], query
    [following] = re.findall(r'href="([^"]+)" rel="next"', page(f"/skills?{kept}"))
    second = page(f"/skills{html.unescape(following)}")
    # A tick stays on its page of the list.
    assert {"cursor=" in href for _ticked, href in ticks(second).values()} == {True}
    assert list(chosen(second)) == ["one-skill", "two-skill"]

    full = page(f"/skills?q=skill&{kept}&compare=red-skill&compare=new-skill&compare=new-skill")
    assert {ticked for ticked, _href in ticks(full).values()} == {True}
    assert "4 is the most: leave one out to tick another" in full


def test_what_cannot_be_compared_is_said_in_a_list(env: WorkerEnv) -> None:
    publish(env, "one-skill")
    publish(env, "secret-skill", audience=MEMBERS)
    shown = page("/skills?compare=one-skill&compare=gone<b>&compare=secret-skill")
    assert list(chosen(shown)) == ["one-skill"]
    for name in ("gone&lt;b&gt;", "secret-skill"):
        assert f'<b class="mono">{name}</b> is ticked, but no skill of this name is listed here.' in shown
    assert 'href="?compare=one-skill&amp;compare=secret-skill#chosen"' in shown
    assert 'href="/compare?skill=one-skill" rel="nofollow">Compare 1<' in shown
    many = urlencode({"compare": list("abcde")}, doseq=True)
    assert "5 skills were named. A comparison has at most 4: leave some out." in page(f"/skills?{many}", 400)
    assert "has 201 characters. It can have 200" in page(f"/skills?compare={'x' * 201}", 400)


def test_a_skill_that_is_ticked_by_its_former_name_stays_ticked(env: WorkerEnv) -> None:
    for slug in ("first-skill", "hidden-skill"):
        publish(env, slug, audience=MEMBERS if slug == "hidden-skill" else "")
        for old, new in ((slug, f"second-{slug}"), (f"second-{slug}", f"third-{slug}")):
            rename_skill(env, old, new, actor="operator", reason="A better name.")
    shown = page("/skills?q=nothing&compare=first-skill&compare=hidden-skill")
    assert list(chosen(shown)) == ["first-skill"]
    # Nobody is told the present name of what is not listed.
    assert '<b class="mono">hidden-skill</b> is ticked, but no skill of this name is listed here.' in shown
    assert "third-hidden-skill" not in shown
    assert "third-first-skill" in page("/compare?skill=first-skill")


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
