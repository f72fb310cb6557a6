"""A badge and a card say what is known now, in words, and loosen nothing but the frame that a card is made for."""

from __future__ import annotations

import re
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from marketplace.badges.badge import Said, drawn
from marketplace.catalog import quarantine_skill, quarantine_version, rename_skill, restore, unyank, yank_version
from marketplace.flags import FlagKind, clear, flag
from tests.marketplace.factories import publish_example
from tests.marketplace.pages.page_factory import finding
from tests.page_text import without_inline_tags
from vskill.environments import WorkerEnv
from vskill.web.middleware import CONTENT_SECURITY_POLICY

pytestmark = pytest.mark.django_db(transaction=True)

WHO = {"actor": "test", "reason": "test"}
BADGE = "/skills/hello-skill/badge.svg"
BASE = "http://127.0.0.1:8000"


def says(client: Client, address: str = BADGE, status: int = 200) -> str:
    """Return what a badge says, after a check that it is a picture and nothing more."""
    answer = client.get(address)
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "image/svg+xml"), answer.content
    root = ElementTree.fromstring(answer.content)  # noqa: S314 - written here
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert names == {"svg", "title", "rect", "path", "g", "text"}
    assert not re.search(rb"href|style|\bon\w+=", answer.content)
    said = root.get("aria-label", "").removeprefix("vskill: ")
    assert [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")] == ["vskill", said]
    return said


def test_a_badge_says_the_present_verdict(client: Client, env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.0.0")
    publish_example(env, body="More.", declared_version="1.1.0", verdict="held", findings=(finding(),))
    assert says(client) == "approved with findings"
    assert says(client, f"{BADGE}?version=1.0.0") == "no known pattern"
    tag = client.get(BADGE).headers["ETag"]
    assert client.get(BADGE, headers={"If-None-Match": tag}).status_code == 304
    flag(env, "hello-skill", FlagKind.OUTSIDE, "It has changed.")
    assert client.get(BADGE, headers={"If-None-Match": tag}).status_code == 200
    assert says(client) == "flagged after publication"
    clear(env, "hello-skill", FlagKind.OUTSIDE)
    yank_version(env, "hello-skill", "1.1.0", **WHO)
    assert says(client) == "no known pattern"
    assert says(client, f"{BADGE}?version=1.1.0") == "yanked"
    unyank(env, "hello-skill", "1.1.0", **WHO)
    quarantine_version(env, "hello-skill", "1.0.0", **WHO)
    assert says(client, f"{BADGE}?version=1.0.0", 404) == "not found"
    quarantine_version(env, "hello-skill", "1.1.0", **WHO)
    assert says(client) == "no version offered"
    quarantine_skill(env, "hello-skill", **WHO)
    assert says(client, status=410) == "withdrawn"
    restore(env, "hello-skill", **WHO)
    rename_skill(env, "hello-skill", "other-name", **WHO)
    assert says(client) == "no version offered"


@pytest.mark.parametrize("slug", ["none", "<script>", "a" * 300, "..", "%ED%A0%80", "skill:alias:x"])
def test_the_badge_of_nothing_is_grey_and_404(client: Client, slug: str) -> None:
    assert says(client, f"/skills/{quote(slug, safe='%')}/badge.svg", 404) == "not found"
    assert b"#55585f" in client.get("/skills/none/badge.svg").content


def test_a_badge_is_as_wide_as_its_words() -> None:
    widths = [int(re.findall(r'width="(\d+)"', drawn(Said(text)))[0]) for text in ("a", "a longer text", "長い文字")]
    assert widths[0] < widths[2] < widths[1]
    assert "&lt;b&gt;" in drawn(Said("<b>"))


def test_a_card_is_for_frames_and_loosens_nothing_else(client: Client, env: WorkerEnv) -> None:
    publish_example(env, description="<b>Bold</b> words.", declared_version="1.0.0")
    for slug, status, words in (("hello-skill", 200, "&lt;b&gt;Bold&lt;/b&gt;"), ("none", 404, "No such skill")):
        answer = client.get(f"/skills/{slug}/card")
        assert (answer.status_code, words in answer.content.decode()) == (status, True)
        policy = dict(one.strip().partition(" ")[::2] for one in answer.headers["Content-Security-Policy"].split(";"))
        site = dict(one.strip().partition(" ")[::2] for one in CONTENT_SECURITY_POLICY.split(";"))
        assert policy.pop("frame-ancestors") == "*"
        assert {name: rule for name, rule in policy.items() if site.get(name) != rule} == {
            "img-src": "'self'",
            "form-action": "'none'",
        }
        assert "X-Frame-Options" not in answer.headers
        assert not re.search(rb"<script|<form|<input", answer.content)
    assert "X-Frame-Options" in client.get("/skills/hello-skill").headers
    quarantine_skill(env, "hello-skill", **WHO)
    assert client.get("/skills/hello-skill/card").status_code == 404


def test_the_page_of_a_skill_says_how_it_is_shared(client: Client, env: WorkerEnv) -> None:
    publish_example(env, description='"><script>alert(1)</script>', declared_version="1.0.0")
    shown = client.get("/skills/hello-skill").content.decode()
    assert f'<meta property="og:url" content="{BASE}/skills/hello-skill">' in shown
    assert "<script>alert" not in shown
    image = re.findall(r'<meta property="og:image" content="([^"]+)"', shown)[0]
    name = re.sub(r"\.[0-9a-f]{12}(?=\.png)", "", image.partition("/static/")[2])
    assert image.startswith(f"{BASE}/static/vskill/preview")
    assert finders.find(name) is not None
    text = without_inline_tags(shown)
    assert f"[![vskill: hello-skill]({BASE}/skills/hello-skill/badge.svg)]({BASE}/skills/hello-skill)" in text
    link = re.findall(r'application/json\+oembed"[^>]*href="([^"]+)"', shown)[0].replace("&amp;", "&")
    body = client.get(link.removeprefix(BASE)).json()
    assert (body["version"], body["type"], body["title"]) == ("1.0", "rich", "hello-skill")
    assert f'src="{BASE}/skills/hello-skill/card"' in body["html"]
    small = client.get(link.removeprefix(BASE) + "&maxwidth=200&maxheight=90").json()
    assert (small["width"], small["height"]) == (200, 90)
    page = quote(f"{BASE}/skills/hello-skill", safe="")
    for query, status in (
        ("", 404),
        ("url=https://evil.example/skills/hello-skill", 404),
        (f"url={BASE}/skills/none", 404),
        (f"url={BASE}/publishers/acme", 404),
        ("url=https://[x", 404),
        (f"url={page}&format=xml", 501),
        (f"url={page}&maxwidth=x", 400),
    ):
        assert client.get(f"/oembed?{query}").status_code == status, query
    quarantine_skill(env, "hello-skill", **WHO)
    assert client.get(link.removeprefix(BASE)).status_code == 410
