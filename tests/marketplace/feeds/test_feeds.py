"""The feeds are Atom as RFC 4287 has it, tell what lists tell, and are sent only where they have changed."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any
from xml.etree import ElementTree

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from marketplace.catalog import (
    quarantine_skill,
    quarantine_version,
    rename_skill,
    restore,
    unyank,
    yank_version,
)
from marketplace.feeds.views import MOST_ENTRIES
from marketplace.flags import FlagKind, flag
from marketplace.models import HistoryEvent, SkillEntry
from marketplace.skills.recently_withdrawn import recently_withdrawn
from tests.marketplace.factories import publish_example, write_entries
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

ATOM = "{http://www.w3.org/2005/Atom}"
WHO = {"actor": "test", "reason": "test"}
FEEDS = ("/feeds/new.atom", "/feeds/updated.atom", "/feeds/withdrawn.atom", "/publishers/acme/feed.atom")
# How often RFC 4287 allows each element: exactly once, at most once, or any number of times.
ONCE, ONCE_AT_MOST = {"id", "title", "updated"}, {"subtitle", "published", "summary", "rights", "generator", "logo"}
ANY = {"author", "link", "entry", "category", "contributor"}
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
ATTRIBUTES = {"feed": {XML_LANG}, "link": {"href", "rel", "type"}, "entry": set(), "author": set(), "id": set()}
OF_AN_ENTRY = {"id", "title", "updated", "published", "summary", "author", "link", "category"}


def parsed(content: bytes) -> ElementTree.Element:
    """Return a feed, after a check that it is one as RFC 4287 has it."""
    root = ElementTree.fromstring(content)  # noqa: S314 - written here
    assert root.tag == f"{ATOM}feed"
    # The order of elements is free, but each is of Atom, and text is plain: no element has a place for markup here.
    for element in root.iter():
        assert element.tag.startswith(ATOM), element.tag
        allowed, children = ATTRIBUTES.get(element.tag.removeprefix(ATOM), {"type"}), len(element)
        assert set(element.attrib) <= allowed, element.attrib
        assert children == 0 or element.tag.removeprefix(ATOM) in {"feed", "entry", "author"}
        assert element.get("type", "text") in {"text", "html", "application/atom+xml"}
    for author in root.iter(f"{ATOM}author"):
        names = [child.tag.removeprefix(ATOM) for child in author]
        assert names.count("name") == 1
        assert set(names) <= {"name", "uri", "email"}
        assert text(author, "name").strip()
        assert re.fullmatch(r"(https?://[!-~]+)?", text(author, "uri"))
    check(root, ONCE | ONCE_AT_MOST | ANY)
    # Entries without an author have that of the feed.
    assert root.find(f"{ATOM}author/{ATOM}name") is not None
    ids = [text(entry, "id") for entry in root.iter(f"{ATOM}entry")]
    assert len(set(ids)) == len(ids)
    for entry in root.iter(f"{ATOM}entry"):
        check(entry, OF_AN_ENTRY)
    times = [text(entry, "updated") for entry in root.iter(f"{ATOM}entry")]
    assert text(root, "updated") == max(times, default="2026-01-01T00:00:00+00:00")
    return root


def moment_of(value: str) -> datetime:
    """Return a time of RFC 3339, which is stricter than what Python reads: seconds, a zone, and a capital T."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", value), value
    return datetime.fromisoformat(value)


def check(element: ElementTree.Element, known: set[str]) -> None:
    """Check the children of a feed or an entry."""
    names = [child.tag.removeprefix(ATOM) for child in element]
    assert set(names) <= known, names
    assert all(names.count(name) == 1 for name in ONCE), names
    assert all(names.count(name) <= 1 for name in ONCE_AT_MOST), names
    relations = [link.get("rel") for link in element.findall(f"{ATOM}link")]
    assert relations.count("alternate") == 1
    for link in element.findall(f"{ATOM}link"):
        assert re.fullmatch(r"https?://[!-~]+", link.get("href", "")), link.attrib
    assert re.match(r"(tag:|https?:)[!-~]+$", text(element, "id"))
    for name in ("updated", "published"):
        for moment in element.findall(f"{ATOM}{name}"):
            moment_of(moment.text or "")
    # An entry has something to read: a summary where there is no content.
    assert element.tag != f"{ATOM}entry" or text(element, "summary").strip()
    assert text(element, "title").strip()
    # What leads back to the feed itself is what it says that it is.
    if element.tag == f"{ATOM}feed":
        assert relations.count("self") == 1


def text(element: ElementTree.Element, name: str) -> str:
    return element.findtext(f"{ATOM}{name}") or ""


def entries(client: Client, address: str) -> list[dict[str, str]]:
    """Return the entries of a feed as their texts by name."""
    answer = client.get(address)
    assert answer.status_code == 200, answer.content
    assert answer.headers["Content-Type"] == "application/atom+xml; charset=utf-8"
    found = parsed(answer.content).iter(f"{ATOM}entry")
    return [{child.tag.removeprefix(ATOM): child.text or "" for child in entry} for entry in found]


def titles(client: Client, address: str) -> list[str]:
    return [one["title"].partition(":")[0] for one in entries(client, address)]


def test_an_empty_registry_has_feeds_that_never_change(client: Client, env: WorkerEnv) -> None:
    for address in FEEDS[:3]:
        assert entries(client, address) == []
        assert client.get(address).content == client.get(address).content


def test_feeds_tell_what_is_new_and_what_has_changed(client: Client, env: WorkerEnv) -> None:
    publish_example(env, name="one", declared_version="1.0.0")
    publish_example(env, name="two", repo_url="https://github.com/northwind/skills", declared_version="1.0.0")
    first = {one["id"]: one for one in entries(client, "/feeds/new.atom")}
    publish_example(env, name="one", body="Changed.", declared_version="1.1.0")
    assert titles(client, "/feeds/new.atom") == ["two 1.0.0", "one 1.1.0"]
    assert titles(client, "/feeds/updated.atom") == ["one 1.1.0", "two 1.0.0"]
    assert titles(client, "/publishers/acme/feed.atom") == ["one 1.1.0"]
    assert titles(client, "/feeds/new.atom?q=two&verdict=clear") == ["two 1.0.0"]
    assert titles(client, "/feeds/new.atom?publisher=nobody") == []
    # An entry keeps its id and, in the feed of new skills, its time; in that of updates it has the time of the change.
    for one in entries(client, "/feeds/new.atom"):
        assert one["updated"] == first[one["id"]]["updated"]
    row = SkillEntry.objects.get(slug="one")
    (updated,) = [one for one in entries(client, "/feeds/updated.atom") if one["title"].startswith("one")]
    assert row.changed_at is not None
    assert datetime.fromisoformat(updated["updated"]) == row.changed_at
    rename_skill(env, "one", "first", **WHO)
    assert {one["id"] for one in entries(client, "/feeds/new.atom")} == set(first)


def test_a_feed_is_sent_again_only_where_it_has_changed(client: Client, env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.0.0")
    for address in (*FEEDS, "/feeds/new.atom?q=hello"):
        tag = client.get(address).headers["ETag"]
        unchanged = client.get(address, headers={"If-None-Match": f'"x", W/{tag}'})
        assert (unchanged.status_code, unchanged.content, unchanged.headers["ETag"]) == (304, b"", tag)
        assert client.head(address).headers["ETag"] == tag
        quarantine_skill(env, "hello-skill", **WHO)
        changed = client.get(address, headers={"If-None-Match": tag})
        # A publisher without a skill that is shown is none.
        assert changed.status_code == (404 if "publishers" in address else 200)
        restore(env, "hello-skill", **WHO)


def test_what_was_withdrawn_leaves_the_feed_when_it_is_given_back(client: Client, env: WorkerEnv) -> None:
    publish_example(env, name="kept", declared_version="1.0.0")
    publish_example(env, name="kept", body="Better.", declared_version="1.1.0")
    yank_version(env, "kept", "1.0.0", actor="test", reason="<b>broken</b>\x1b[31m \u202e")
    (entry,) = entries(client, "/feeds/withdrawn.atom")
    assert entry["title"] == "Withdrawn: kept 1.0.0"
    assert "&lt;b&gt;broken&lt;/b&gt;" in entry["summary"]
    assert entry["id"].endswith("/1.0.0")
    assert titles(client, "/feeds/new.atom") == ["kept 1.1.0"]
    unyank(env, "kept", "1.0.0", **WHO)
    assert entries(client, "/feeds/withdrawn.atom") == []
    quarantine_skill(env, "kept", **WHO)
    assert [one["title"] for one in entries(client, "/feeds/withdrawn.atom")] == ["Withdrawn: kept"]


def test_what_is_withdrawn_is_found_however_much_was_done_since(client: Client, env: WorkerEnv) -> None:
    for version in ("1.0.0", "1.1.0", "1.2.0"):
        publish_example(env, name="kept", body=version, declared_version=version)
    yank_version(env, "kept", "1.0.0", **WHO)
    quarantine_version(env, "kept", "1.1.0", **WHO)
    publish_example(env, name="gone", declared_version="1.0.0")
    quarantine_version(env, "gone", "1.0.0", **WHO)
    quarantine_skill(env, "gone", **WHO)
    wanted = ["Withdrawn: gone", "Withdrawn: kept 1.1.0", "Withdrawn: kept 1.0.0"]
    assert [one["title"] for one in entries(client, "/feeds/withdrawn.atom")] == wanted
    # The versions themselves say so: the history may be as long as it likes.
    HistoryEvent.objects.all().delete()
    assert [one["title"] for one in entries(client, "/feeds/withdrawn.atom")] == wanted
    if connection.vendor == "sqlite":
        with CaptureQueriesContext(connection) as asked:
            recently_withdrawn(env, 5)
        plans = []
        for one in asked.captured_queries:
            with connection.cursor() as cursor:
                cursor.execute("EXPLAIN QUERY PLAN " + one["sql"].replace("%", "%%"), [])
                plans.append("; ".join(row[-1] for row in cursor.fetchall()))
        for index in ("version_yanked", "version_quarantined"):
            assert any(f"USING INDEX {index} (namespace=?" in plan for plan in plans), plans


def test_what_a_skill_says_of_itself_is_text_and_what_is_known_of_it_comes_first(
    client: Client, env: WorkerEnv
) -> None:
    publish_example(env, name="sly", description="<script>alert(1)</script>\u202e & more", declared_version="1.0.0")
    flag(env, "sly", FlagKind.OUTSIDE, "What it fetches has changed.")
    (entry,) = entries(client, "/feeds/new.atom")
    assert entry["title"].endswith("Flagged after publication")
    assert entry["summary"].startswith("This registry flagged it after it was published: What it fetches has changed.")
    assert "&lt;script&gt;" in entry["summary"]
    assert "<" not in entry["summary"]
    assert "\u202e" not in entry["summary"]


def test_a_feed_is_bounded(client: Client, env: WorkerEnv, django_assert_max_num_queries: Any) -> None:
    write_entries(env, MOST_ENTRIES + 5)
    with django_assert_max_num_queries(6):
        assert len(entries(client, "/feeds/new.atom")) == MOST_ENTRIES
    with django_assert_max_num_queries(6):
        entries(client, "/feeds/withdrawn.atom")


def test_pages_lead_to_their_feeds(client: Client, env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.0.0")
    wanted = {
        "/": "/feeds/new.atom",
        "/skills": "/feeds/withdrawn.atom",
        "/skills?q=hello&verdict=clear&sort=name": "/feeds/updated.atom?q=hello&amp;verdict=clear",
        "/publishers/acme": "/publishers/acme/feed.atom",
    }
    for page, feed in wanted.items():
        shown = client.get(page).content.decode()
        assert re.search(rf'<link rel="alternate" type="application/atom\+xml"[^>]* href="{re.escape(feed)}">', shown)
        assert f'<a href="{feed}"' in shown
        assert client.get(feed.replace("&amp;", "&")).status_code == 200
    assert client.get("/feeds/best.atom").status_code == 404
