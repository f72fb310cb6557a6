"""What cannot be meant is refused in words, in the form of whoever asks; what is not there leads to what is near."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from marketplace.catalog import delete_skill, quarantine_skill, rename_skill, yank_version
from marketplace.skills import near_filters
from marketplace.skills.near_filters import near_publishers
from marketplace.skills.near_names import near_slugs
from submissions.states import State
from tests.marketplace.factories import publish_example
from tests.routes import PLACE, every_route
from tests.submissions.factories import make_submission
from vskill.environments import WorkerEnv
from vskill.kv.cursors import encode_cursor
from vskill.rate_limits.kinds import Form, form_of
from vskill.web.query_strings import LONGEST_VALUE, bad_query

pytestmark = pytest.mark.django_db(transaction=True)

WHO = {"actor": "test", "reason": "test"}
# Parts of addresses outside the API that programs read.
OF_PROGRAMS = (
    *("/.well-known/", "/download/", ".atom", "/sitemap", "/robots.txt", "/llms.txt", "/badge.svg", "/oembed"),
    "/git/",
    "/marketplace.json",
    "/mcp",
)
PUBLIC = [route.replace(PLACE, "none") for route in every_route() if not route.startswith("/admin/")]
KINDS = {
    Form.PAGE: "text/html",
    Form.TEXT: "text/plain",
    Form.JSON: "application/json",
    Form.PROBLEM: "application/problem+json",
    Form.RPC: "application/json",
}


def message_of(answer: Any) -> str:
    """Return what an answer says, whatever its form."""
    kind = answer.headers["Content-Type"]
    text: str = answer.content.decode()
    if not kind.startswith("application/"):
        return text
    told: dict[str, Any] = json.loads(text)
    return str(told.get("detail") or (told["error"] if isinstance(told["error"], dict) else told)["message"])


def refused(client: Client, address: str) -> str:
    """Return what is said of an address, which is refused in the form of its clients."""
    answer = client.get(address)
    assert answer.status_code == 400, (address, answer.status_code, answer.content[:300])
    form = form_of(address.partition("?")[0])
    # What programs read is never answered with a page, and what people read always.
    assert (form is not Form.PAGE) == (address.startswith("/api/") or any(part in address for part in OF_PROGRAMS))
    assert answer.headers["Content-Type"].startswith(KINDS[form]), (address, answer.headers["Content-Type"])
    return message_of(answer)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("q=a%00b", "control character"),
        ("x=%1b%5B31m", "control character"),
        ("q=" + "a" * (LONGEST_VALUE + 1), "has 2049"),
    ],
    ids=["nul", "escape", "too long"],
)
def test_every_page_and_dialect_refuses_a_query_that_nobody_can_mean(client: Client, query: str, says: str) -> None:
    for address in PUBLIC:
        assert says in refused(client, f"{address}?{query}"), address


def test_a_form_is_refused_in_its_form() -> None:
    assert bad_query(Form.PAGE, "Not <so>.").content.count(b"Not &lt;so&gt;.") == 1
    assert bad_query(Form.TEXT, "Not <so>.").content == b"Not <so>."


LISTS = {
    "/skills?colour=red": ("'colour'", "verdict, capability, publisher, agent, license, tag, sort"),
    "/skills?sort=best": ("'best'", "newest, updated"),
    "/skills?sort=relevance": ("needs words", "newest, updated, downloads, trending, name."),
    "/skills?view=rows": ("'rows'", "cards, table"),
    "/skills?verdict=good": ("'good'", "clear, notes, format"),
    "/skills?capability=fly": ("'fly'", "shell"),
    "/skills?q=" + "a" * 201: ("201 characters", "200"),
    "/skills?cursor=nonsense": ("another list",),
    "/skills?" + "&".join(f"compare={one}" for one in "abcde"): ("5 skills were named", "at most 4"),
    "/publishers/acme?sort=name": ("'sort'", "cursor"),
    "/publishers/acme?cursor=x": ("another list",),
    "/queue?verdict=clear": ("'verdict'", "repository, group"),
    "/queue?group=lost": ("'lost'", "held"),
    "/api/v1/skills?author=acme": ("'author'", "publisher, verdict"),
    "/api/v1/skills?sort=best": ("'best'", "newest"),
    "/api/v1/skills?sort=relevance": ("needs words", "newest, updated, name, downloads, trending."),
    "/api/v1/skills?verdict=good": ("'good'", "clear, notes"),
    "/api/v1/skills?capability=fly": ("'fly'", "shell"),
    **{
        f"{place}limit={given}": ("whole number from 1", f"'{given}'", f"At most {highest}")
        for place, highest in (
            ("/api/v1/skills?", 200),
            ("/api/v1/search?q=x&", 100),
            ("/api/search?q=x&", 100),
            ("/api/v1/submissions?", 200),
        )
        for given in ("0", "-1", "many")
    },
    "/api/v1/skills?q=" + "a" * 600: ("600 characters", "512"),
    "/api/v1/search?q=x&sort=name": ("'sort'", "q, limit, mode, publisher, verdict"),
    "/api/v1/search?q=x&verdict=good": ("'good'", "clear, notes"),
    "/api/v1/search?q=x&capability=fly": ("'fly'", "shell"),
    "/api/v1/search?q=x&owner=acme&publisher=b": ("one filter", "two values"),
    "/api/v1/search?q=x&mode=near": ("'near'", "exact"),
    "/api/v1/skills/search?q=x&sort=name": ("'sort'", "q, limit"),
    "/api/v1/skills/hello-skill/versions?page=2": ("'page'", "limit, cursor"),
    "/api/v1/skills/hello-skill/versions?cursor=x": ("another list",),
    "/api/search?q=x&prefix=a": ("'prefix'", "q, limit, publisher, verdict"),
    "/api/v1/skills/search?q=x&agent=nobody": ("'nobody'", "claude-code"),
    "/feeds/new.atom?sort=name": ("'sort'", "q, verdict, capability, publisher"),
    "/feeds/updated.atom?verdict=good": ("'good'", "clear, notes"),
    "/feeds/new.atom?q=" + "a" * 201: ("201 characters", "200"),
    "/publishers/acme/feed.atom?cursor=x": ("'cursor'",),
    "/api/v1/submissions?state=held": ("'state'", "repoUrl"),
    "/api/v1/jobs/none?standing=lost": ("'lost'", "waiting"),
    "/api/v1/jobs/none?cursor=-1": ("cursor",),
    "/api/v1/listings/none?cursor=x": ("cursor",),
}


@pytest.fixture
def _published(env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.0.0")


@pytest.mark.usefixtures("_published")
def test_what_a_list_does_not_have_is_refused_with_what_it_has(client: Client) -> None:
    for address, words in LISTS.items():
        if address.startswith(("/api/v1/listings/none", "/api/v1/jobs/none?cursor")):
            # The list itself is looked for first.
            assert client.get(address).status_code == 404
            continue
        said = refused(client, address).replace("&#x27;", "'")
        assert [word for word in words if word not in said] == [], (address, said[-900:])


@pytest.mark.usefixtures("_published")
def test_a_limit_beyond_the_highest_is_answered_as_the_highest(client: Client) -> None:
    for place in ("/api/v1/skills?", "/api/v1/search?q=hello&", "/api/v1/submissions?"):
        for given in ("200", "99999999", "9" * 2_000, "0001"):
            assert client.get(f"{place}limit={given}").status_code == 200, (place, given[:20])


@pytest.mark.usefixtures("_published")
def test_a_parameter_that_is_given_twice_is_refused_and_no_value_is_dropped(client: Client) -> None:
    for address in PUBLIC:
        assert "verdict is given 2 times" in refused(client, f"{address}?verdict=clear&verdict=notes"), address
    # These are named together, and what others append filters nothing.
    assert client.get("/compare?skill=hello-skill&skill=other").status_code == 200
    assert client.get("/skills?compare=hello-skill&compare=other").status_code == 200
    assert client.get("/skills?ref=a&ref=b&utm_source=a&utm_source=a").status_code == 200


@pytest.mark.usefixtures("_published")
def test_a_forged_cursor_is_refused_by_every_list(client: Client) -> None:
    forged = [encode_cursor("x", "2026-01-01T00:00:00+00:00", 1), "WyJ4IiwxLDJd", "ä", "=" * 40]
    for place in ("/skills?", "/skills?q=hello&", "/publishers/acme?", "/api/v1/skills?", "/api/v1/skills?sort=name&"):
        for cursor in forged:
            assert "belongs to another list" in refused(client, f"{place}cursor={quote(cursor)}")


@pytest.mark.usefixtures("_published")
def test_what_others_append_to_a_link_is_left_alone(client: Client) -> None:
    for address in ("/skills?utm_source=mail&fbclid=1", "/publishers/acme?utm_medium=x", "/queue?ref=x"):
        assert client.get(address).status_code == 200


@pytest.fixture
def names(env: WorkerEnv) -> WorkerEnv:
    """Publish skills with names that are near to each other, and withdraw some of them."""
    for name in ("pdf-forms", "pdf-merge", "release-notes", "secret-forms", "gone-forms", "last-forms"):
        publish_example(env, name=name, description="A skill.", declared_version="1.0.0")
    publish_example(env, name="other", repo_url="https://github.com/northwind/skills")
    publish_example(env, name="hidden", repo_url="https://github.com/northwinds/skills")
    quarantine_skill(env, "secret-forms", **WHO)
    delete_skill(env, "gone-forms", **WHO)
    yank_version(env, "last-forms", "1.0.0", **WHO)
    quarantine_skill(env, "hidden", **WHO)
    return env


def test_a_name_that_nothing_has_leads_to_names_that_are_near(names: WorkerEnv, client: Client) -> None:
    assert near_slugs(names, "pdf-form") == ["pdf-forms"]
    assert near_slugs(names, "pfd-forms") == ["pdf-forms"]
    assert near_slugs(names, "pdf")[:2] == ["pdf-forms", "pdf-merge"]
    assert near_slugs(names, "Release_Notes".lower().replace("_", "-") + "-2") == ["release-notes"]
    assert near_publishers(names, "nortwind") == ["northwind"]
    page = client.get("/skills/pfd-forms")
    assert (page.status_code, b'<a href="/skills/pdf-forms">pdf-forms</a>' in page.content) == (404, True)
    page = client.get("/publishers/nortwind")
    assert (page.status_code, b'<a href="/publishers/northwind">' in page.content) == (404, True)
    assert b'href="/skills/pdf-forms"' in client.get("/skills/pfd-forms/scan-again").content
    for place in (
        "/api/v1/skills/pfd-forms",
        "/api/v1/download?slug=pfd-forms",
        "/api/v1/resolve?slug=pfd-forms&hash=0",
    ):
        answer = client.get(place)
        assert (answer.status_code, answer.content) == (404, b"Skill not found. Near names: pdf-forms")
    assert client.get("/publishers/nortwind/feed.atom").content.endswith(b"Near names: northwind")
    answer = client.get("/publishers/nortwind/.well-known/agent-skills/index.json")
    assert answer.content == b"There is no publisher of that name. Near names: northwind"
    assert client.get("/api/v1/skills/zzz").content == b"Skill not found"
    assert b'href="/skills/pdf-forms"' in client.get("/skills/pdf-forms?version=9.9.9").content


def test_a_word_of_a_name_and_a_slip_in_its_first_letters_lead_to_the_name(names: WorkerEnv) -> None:
    # The neighbours in the alphabet of what is typed are all others.
    for number in range(13):
        publish_example(names, name=f"ers-{number:02}", repo_url=f"https://github.com/nrt{number:02}/skills")
        publish_example(names, name=f"erk-{number:02}", repo_url=f"https://github.com/nos{number:02}/skills")
    for asked in ("notes", "ntoes", "erlease-ntoes", "the-erlease-notes"):
        assert near_slugs(names, asked)[:1] == ["release-notes"], asked
    assert near_publishers(names, "nrothwind") == ["northwind"]


def test_an_address_and_a_filter_lead_to_the_same_publishers(
    env: WorkerEnv, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, place in enumerate(("https://git.example.test/northwind/tools", "https://github.com/acme/skills")):
        publish_example(env, name=f"skill-{number}", repo_url=place)
    # Among very many publishers, one is found by its neighbours alone.
    monkeypatch.setattr(near_filters, "_FREQUENT", 0)
    monkeypatch.setattr(near_filters, "_NEIGHBOURS", 1)
    wanted = "northwind.git.example.test"
    for asked in ("nortwind", "onrthwind", "NORTHWIND", "northwind.git.example.tset"):
        assert near_publishers(env, asked) == [wanted], asked
        assert f'href="/publishers/{wanted}"' in client.get(f"/publishers/{asked}", follow=True).content.decode()
        assert f'href="?publisher={wanted}"' in client.get(f"/skills?publisher={asked}").content.decode()


def test_a_skill_of_another_publisher_leads_to_it_and_an_unknown_one_to_its_publisher(
    names: WorkerEnv, client: Client
) -> None:
    page = client.get("/@nobody/other")
    assert (page.status_code, b'<a href="/skills/other">@northwind/other</a>' in page.content) == (404, True)
    assert client.get("/api/v1/skills/@nobody/other").content == b"Skill not found. Near names: @northwind/other"
    assert client.get("/api/v1/skills/nobody/skills/other").content.endswith(b"@northwind/other")
    assert client.get("/api/v1/skills/@northwnd/zzz").content.endswith(b"Near names: northwind")
    page = client.get("/@northwnd/zzz")
    assert (page.status_code, b'<a href="/publishers/northwind">' in page.content) == (404, True)
    # What is withheld leads nowhere.
    for owner in ("nobody", "northwinds"):
        assert b'href="/skills/hidden"' not in client.get(f"/@{owner}/hidden").content
        assert b"@northwinds" not in client.get(f"/api/v1/skills/@{owner}/hidden").content


def test_a_version_or_a_file_that_is_not_there_leads_to_those_that_are_near(names: WorkerEnv, client: Client) -> None:
    for version in ("1.1.0", "1.2.0", "2.0.0"):
        publish_example(names, name="pdf-forms", description=version, declared_version=version)
    yank_version(names, "pdf-forms", "1.2.0", **WHO)
    said = client.get("/api/v1/skills/pdf-forms/versions/v1.1.1").content
    assert said == b"Version not found. Near versions: 1.1.0, 1.0.0"
    assert client.get("/api/v1/skills/pdf-forms/versions/x").content == b"Version not found"
    assert b'<a href="/skills/pdf-forms?version=1.1.0">1.1.0</a>' in client.get("/skills/pdf-forms?version=1.1").content
    page = client.get("/skills/pdf-forms/files/docs/skill.md?version=1.0.0")
    assert (page.status_code, page.content.count(b'files/SKILL.md?version=1.0.0">SKILL.md</a>')) == (404, 1)
    said = client.get("/api/v1/skills/pdf-forms/file?path=SKIL.md").content
    assert said == b"File not found. Near files: SKILL.md"
    assert client.get(f"/api/v1/skills/pdf-forms/file?path={'x' * 300}").content == b"File not found"


def test_no_name_is_near_that_lists_do_not_show(names: WorkerEnv) -> None:
    for asked in ("secret-form", "gone-form", "last-form", "hidde", "forms"):
        assert not {"secret-forms", "gone-forms", "last-forms", "hidden"} & set(near_slugs(names, asked))
    rename_skill(names, "pdf-forms", "paper-forms", **WHO)
    assert near_slugs(names, "pdf-form") == ["paper-forms"]
    assert near_publishers(names, "northwindx") == ["northwind"]


@pytest.mark.parametrize("asked", ["", "x", "\0a", "\ud800bc", "a" * 5000, "%", "é" * 80, "skill:alias:x"])
def test_nothing_is_near_to_what_is_no_name(names: WorkerEnv, asked: str) -> None:
    assert (near_slugs(names, asked), near_publishers(names, asked)) == ([], [])


def test_the_part_of_an_id_leads_to_its_submission(env: WorkerEnv, client: Client) -> None:
    whole = make_submission(env, State.ON_HOLD).id
    page = client.get(f"/submissions/{whole[:-6]}")
    assert (page.status_code, whole.encode() in page.content) == (404, True)
    assert client.get(f"/api/v1/submissions/{whole[:-1]}").json()["near"] == [whole]
    # A few characters would be a way to list them.
    for short in (whole[:9], "sub_", "%25", "requeue"):
        assert client.get(f"/api/v1/submissions/{short}").json()["near"] == []


def test_near_names_cost_a_few_look_ups(names: WorkerEnv, django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(10):
        near_slugs(names, "a-very-long-name-of-many-words-that-nothing-has")
    with django_assert_max_num_queries(3):
        near_publishers(names, "nortwind")
