"""The home page, the list and the pages of publishers: true numbers, exact pages, clear errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError
from django.test import AsyncClient

from marketplace.catalog import quarantine_skill
from marketplace.models import SkillEntry
from marketplace.pages import lists as page_data
from marketplace.provenance.signing import sign_published
from marketplace.skills.downloads import count_download_sync
from tests.marketplace.pages.page_factory import publish
from tests.marketplace.provenance.signing_registry import signing_with
from tests.submissions.api.staff.staff import OPERATE, REVIEW, token_of
from vskill.access_tokens.scopes import Scope
from vskill.accounts.roles import Role
from vskill.environments import WorkerEnv
from vskill.kv.threads import writers

pytestmark = pytest.mark.django_db(transaction=True)
put = sync_to_async(publish)


async def page(path: str, status: int = 200) -> str:
    response = await AsyncClient().get(path)
    assert response.status_code == status, response.content.decode()[:500]
    return response.content.decode()


def names(shown: str) -> list[str]:
    return re.findall(r'<h3><a href="/skills/([\w-]+)">', shown)


def names_in_table(shown: str) -> list[str]:
    return re.findall(r'<th scope="row" class="wide-cell"><a href="/skills/([\w-]+)">', shown)


def figures(shown: str) -> dict[str, str]:
    return dict(re.findall(r"<dt>([^<]+)</dt><dd>(?:<time[^>]*>)?([^<]+)", shown))


async def test_an_empty_registry_says_what_to_do_first(env: WorkerEnv) -> None:
    for path in ("/", "/skills"):
        shown = await page(path)
        assert "Nothing is published yet" in shown
        assert 'href="/submit"' in shown
    assert figures(await page("/"))["skills published"] == "0"
    assert figures(await page("/"))["last published"] == "—"


async def test_home_counts_what_is_there_and_says_when(env: WorkerEnv) -> None:
    await put(env, "one", text="a")
    await put(env, "one", text="b")
    await put(env, "two", repo_url="https://github.com/northwind/tools")
    shown = await page("/")
    counted = figures(shown)
    assert (counted["skills published"], counted["versions kept"], counted["publishers"]) == ("2", "3", "2")
    assert "Counted <time" in shown
    assert names(shown) == ["two", "one"]
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", shown))
    assert re.search(r"Skills first published by week, 26 weeks to .*?, so far 2 week from \d+ \w+ \d+ 0 week", text)
    assert "Downloads by week — Nothing is known of these weeks yet." in text
    skill = await sync_to_async(SkillEntry.objects.get)(slug="one")
    await sync_to_async(count_download_sync)(env, skill.pk, "0.0.1")
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", await page("/")))
    # The weeks before the first download that is known are not said to have had none.
    assert re.search(r"Downloads week from \d+ \w+ \d+, so far 1 week from \d+ \w+ \d+ — week", text)


async def test_what_is_downloaded_in_these_days_is_trending_on_home_and_in_the_list(env: WorkerEnv) -> None:
    for name in ("first", "second", "third"):
        await put(env, name)
    assert "Trending" not in await page("/")
    for name, number in (("first", 2), ("third", 3)):
        skill = await sync_to_async(SkillEntry.objects.get)(slug=name)
        for _time in range(number):
            await sync_to_async(count_download_sync)(env, skill.pk, "0.0.1")
    newest, _, trending = (await page("/")).partition("Trending")
    # What nobody downloads is no trend, but has its place at the end of the list.
    assert (names(newest), names(trending)) == (["third", "second", "first"], ["third", "first"])
    assert re.findall(r"</svg>(\d+) in 7 days", newest + trending) == ["3", "2"]
    assert 'href="/skills?sort=trending"' in trending
    for view in ("cards", "table"):
        shown = await page(f"/skills?sort=trending&view={view}")
        assert re.findall(r'<a href="/skills/(\w+)">', shown) == ["third", "first", "second"]
        assert "most downloaded in 7 days first" in shown


async def test_a_search_finds_by_name_and_by_description(env: WorkerEnv) -> None:
    await put(env, "pdf-forms", description="Fill in forms.")
    await put(env, "release-notes", description="Summarise a git history.")
    assert names(await page("/skills?q=pdf")) == ["pdf-forms"]
    assert names(await page("/skills?q=summar")) == ["release-notes"]
    shown = await page("/skills?q=nothing-like-it")
    assert "No skill matches" in shown
    assert "Nothing is published yet" not in shown
    meant = await page("/skills?q=relaese")
    assert "No skill has every word of “relaese”. These have “release”." in meant
    assert names(meant) == ["release-notes"]


async def test_what_a_link_searches_for_cannot_deceive(env: WorkerEnv) -> None:
    await put(env, "one")
    for parameter in ("q", "publisher", "capability"):
        shown = await page(f"/skills?{parameter}=%E2%80%AEevil", 400 if parameter == "capability" else 200)
        assert r"\u{202e}evil" in shown
        # The field of the search keeps what was typed.
        assert "\u202e" not in re.sub(r"<input[^>]*>", "", shown)


async def test_facets_have_counts_and_lead_to_lists_that_long(env: WorkerEnv) -> None:
    said: dict[str, Any] = {"license": "Apache-2.0", "metadata": {"tags": "pdf"}}
    await put(env, "one", verdict="clear", capabilities=("network_egress",), **said)
    said["metadata"] = {"tags": "pdf office"}
    await put(env, "two", verdict="notes", capabilities=("network_egress", "shell_execution"), **said)
    away = "https://github.com/northwind/tools"
    await put(env, "three", verdict="notes", repo_url=away, license="MIT", compatibility="Made for Codex")
    shown = (await page("/skills")).replace("&amp;", "&")
    options = re.findall(
        r'<li><a href="(\?[^"]*)"><span>(?:<svg.*?</svg>)?([^<]*)</span><span class="num">(\d+)', shown
    )
    assert {(label, int(count)) for _, label, count in options} == {
        ("No known pattern", 1),
        ("Checked, with notes", 2),
        ("Uses the network, not known how", 2),
        ("Runs commands or code", 1),
        ("acme", 2),
        ("northwind", 1),
        ("pdf", 2),
        ("office", 1),
        ("Apache-2.0", 2),
        ("MIT", 1),
        ("codex", 1),
    }
    for href, _label, count in options:
        assert len(names(await page(f"/skills{href}"))) == int(count)


async def test_a_tag_that_is_not_among_the_most_frequent_can_be_typed(env: WorkerEnv) -> None:
    for number in range(12):
        await put(env, f"skill-{number}", metadata={"tags": f"common tag-{number:02}"})
    shown = await page("/skills?q=skill&tag=common&sort=name&view=table")
    assert ("tag-08</span>" in shown, "tag-09</span>" in shown) == (True, False)
    [form] = re.findall(r'<form class="facet-more".*?</form>', shown, re.DOTALL)
    assert re.findall(r'<option value="([^"]+)">', form) == ["tag-09", "tag-10", "tag-11"]
    # Whoever types another one keeps the rest of the list, and the one that was chosen is not sent beside it.
    assert re.findall(r'name="(\w+)" (?:type="text"|value="(\w+)")', form) == [
        ("q", "skill"),
        ("sort", "name"),
        ("view", "table"),
        ("tag", ""),
    ]
    assert names_in_table(await page("/skills?q=skill&sort=name&view=table&tag=tag-10")) == ["skill-10"]


async def test_a_chosen_filter_can_be_taken_back_even_when_nothing_has_it(env: WorkerEnv) -> None:
    await put(env, "one")
    shown = await page("/skills?publisher=nobody&q=one")
    assert "No skill matches" in shown
    assert 'aria-current="true"' in shown
    assert 'href="?q=one"' in shown


async def test_an_empty_list_leads_to_values_that_are_near_to_what_no_skill_has(env: WorkerEnv) -> None:
    await put(env, "one", license="Apache-2.0", metadata={"tags": "kubernetes docker"})
    await put(env, "two", repo_url="https://git.example.test/northwind/tools")
    hidden = await put(env, "three", license="Apache-3.0", repo_url="https://github.com/secret/x")
    await sync_to_async(quarantine_skill)(env, hidden.slug, actor="test", reason="test")
    for chosen, near in {
        "tag=kubernets": ["?q=one&tag=kubernetes"],
        "tag=ubernetes": ["?q=one&tag=kubernetes"],
        "license=apache-2": ["?q=one&license=Apache-2.0"],
        "publisher=nortwind": ["?q=one&publisher=northwind.git.example.test"],
        "publisher=secre": [],
        "tag=dokcer&license=apache2.0": [
            "?q=one&license=apache2.0&tag=docker",
            "?q=one&license=Apache-2.0&tag=dokcer",
        ],
        "tag=zzzz": [],
    }.items():
        shown = await page(f"/skills?q=one&{chosen}")
        assert "No skill matches" in shown
        [empty] = re.findall(r'<div class="empty">.*?</div>', shown, re.DOTALL)
        found = re.findall(r'<a href="([^"]+)"', empty.replace("&amp;", "&"))
        assert [parse_qs(one[1:]) for one in found] == [parse_qs(one[1:]) for one in near], chosen
    # A value that there is has no near ones, however empty the list is.
    assert "no skill has it" not in await page("/skills?q=nothing&tag=docker")


async def test_pages_neither_repeat_nor_lose_a_skill_that_is_published_meanwhile(env: WorkerEnv) -> None:
    published = [f"skill-{number:02}" for number in range(7)]
    for name in published:
        await put(env, name)
    seen: list[str] = []
    with patch.object(page_data, "PAGE_SIZE", 3):
        path = "/skills"
        while path:
            shown = (await page(path)).replace("&amp;", "&")
            seen += names(shown)
            await put(env, f"late-{len(seen)}")
            following = re.search(r'<a class="button" href="(\?[^"]+)" rel="next">', shown)
            path = f"/skills{following[1]}" if following else ""
    assert seen == published[::-1]


async def test_an_order_and_a_view_are_kept_in_the_address(env: WorkerEnv) -> None:
    await put(env, "bbb")
    await put(env, "aaa")
    assert names(await page("/skills?sort=name")) == ["aaa", "bbb"]
    table = await page("/skills?sort=name&view=table")
    assert "<table>" in table
    assert table.index("/skills/aaa") < table.index("/skills/bbb")


@pytest.mark.parametrize("cursor", ["nonsense", "WyJ4IiwxLDJd", "%00", "ä"])
async def test_a_cursor_of_another_list_is_refused_in_words(env: WorkerEnv, cursor: str) -> None:
    await put(env)
    shown = await page(f"/skills?cursor={cursor}", 400)
    assert ("control character" if cursor == "%00" else "belongs to another list") in shown


async def test_a_publisher_shows_what_it_published_and_nobody_else(env: WorkerEnv) -> None:
    await put(env, "one")
    await put(env, "two", repo_url="https://github.com/northwind/tools")
    shown = await page("/publishers/acme")
    assert names(shown) == ["one"]
    assert "1 skill" in shown
    await page("/publishers/nobody", 404)


async def test_one_unreadable_entry_does_not_hide_the_others(env: WorkerEnv) -> None:
    await put(env, "good")
    await put(env, "odd", capabilities=("network_egress",))

    rows = SkillEntry.objects.using(env.database).filter(key="skill:odd")
    await sync_to_async(rows.write_row)(value="{not json")
    assert names(await page("/skills")) == ["odd", "good"]
    assert "Not known" in await page("/skills?view=table")


@pytest.mark.parametrize("path", ["/", "/skills", "/skills?q=x", "/skills/x", "/skills/x/scan", "/publishers/x"])
async def test_a_database_that_is_away_is_503_and_never_an_empty_page(env: WorkerEnv, path: str) -> None:
    await put(env)
    with patch("django.db.models.sql.compiler.SQLCompiler.execute_sql", side_effect=OperationalError("away")):
        response = await AsyncClient(raise_request_exception=False).get(path)
    assert response.status_code == 503
    assert int(response["Retry-After"]) > 0
    shown = response.content.decode()
    assert "cannot be read right now" in shown
    assert "Nothing is published yet" not in shown


@pytest.mark.parametrize("path", ["/", "/skills", "/about/verification"])
async def test_pages_are_read_and_never_written(env: WorkerEnv, path: str) -> None:
    response = await AsyncClient().post(path)
    assert response.status_code == 405


async def test_what_verdicts_mean_names_each_of_them(env: WorkerEnv) -> None:
    shown = await page("/about/verification")
    for words in (
        "No known pattern",
        "Checked, with notes",
        "Held for a person",
        "Not scanned",
        "Refused",
        "Format problem",
    ):
        assert words in shown


async def test_every_page_forbids_scripts_and_frames_of_others(env: WorkerEnv) -> None:
    response = await AsyncClient().get("/")
    policy = response["Content-Security-Policy"]
    for rule in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"):
        assert rule in policy
    assert "unsafe" not in policy


async def test_what_the_page_about_the_api_says_is_there(env: WorkerEnv, tmp_path: Path) -> None:
    await put(env, version="1.0.0")
    shown = (await page("/about/api")).replace("&amp;", "&")
    requests = re.findall(r"<code>GET (/\S+?)</code>", shown)
    assert len(requests) > 8
    known = {
        "{slug}": "release-notes",
        "{version}": "1.0.0",
        "?q=": "?q=notes",
        "path=&": "path=SKILL.md&",
        "index=&": "index=0&",
        "first=&": "first=1&",
    }
    token = await writers.run(token_of, env, Role.ADMIN, Scope.REVIEW, Scope.OPERATE)
    # What is signed is there where the registry signs.
    with signing_with(tmp_path / "keys.pem") as signing:
        await writers.run(sign_published, signing)
        for request in requests:
            address = request
            for name, value in known.items():
                address = address.replace(name, value)
            if "{id}" in address or address == "/healthz":
                continue
            url = re.sub(r"\w+=(?=&|$)&?", "", address)
            sent = {"X-Skills-Update-Check": "1"}
            if address.startswith((REVIEW, OPERATE)):
                sent["Authorization"] = f"Bearer {token}"
            response = await AsyncClient().get(url, headers=sent)
            assert response.status_code == 200, request


async def test_the_old_address_of_an_icon_leads_to_ours(env: WorkerEnv) -> None:
    response = await AsyncClient().get("/favicon.ico")
    assert response.status_code == 301
    assert response["Location"].endswith("vskill/favicon.svg")


async def test_a_search_of_too_many_words_says_beside_the_count_which_were_not_searched_for(env: WorkerEnv) -> None:
    await put(env, "release-notes", description="Changelog of commits by git tag.")
    typed = "release notes changelog of commits by git tag"
    shown = await page(f"/skills?q={typed}")
    assert f"</b> skill for “{typed}”" in shown
    assert "Not searched for" not in shown
    shown = await page(f"/skills?q={typed} users <b>Zzzzqq")
    assert f"</b> skill for the beginning of “{typed} users &lt;b&gt;Zzzzqq”" in shown
    assert "Not searched for: “users b zzzzqq”. A search has at most 8 words." in shown
    shown = await page("/skills?q=one two three four five six seven eight nine")
    assert "publishers and the first 1,000 different words of each SKILL.md are searched." in shown
    shown = await page(f"/feeds/new.atom?q={typed} users zzzzqq")
    assert "Not searched for, because a search has at most 8 words: users zzzzqq.</subtitle>" in shown
