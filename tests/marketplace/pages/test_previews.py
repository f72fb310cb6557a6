"""What other sites show of a link to a page: its title, what it is about, its address and a picture."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.template import engines
from django.test import Client, RequestFactory

from marketplace.skill_sets.editing import Choice, Told, create_collection
from tests.marketplace.pages.page_factory import publish
from vskill.environments import WorkerEnv
from vskill.worker_context import run_with_worker_env

pytestmark = pytest.mark.django_db(transaction=True)


def previewed(client: Client, path: str) -> dict[str, str]:
    shown = client.get(path).content.decode()
    found = re.findall(r'<meta (?:property="og:|name="(?=twitter))([\w:]+)" content="([^"]*)">', shown)
    assert len({name for name, _content in found}) == len(found), "one of each"
    return {name: unescape(content) for name, content in found}


def test_every_page_tells_its_own_title_and_description(client: Client, env: WorkerEnv) -> None:
    publish(env, "one", repo_url="https://github.com/acme/skills")
    publish(env, "two", repo_url="https://github.com/acme/skills")
    told = Told('The "A & B" <set>', "For the day of a release.", (Choice("one"),))
    create_collection(env, "our-team", told, actor="test", reason="test")
    wanted = {
        "/": ("vskill: agent skills, checked before they are published", "A registry of agent skills that were read"),
        "/skills": ("Skills", "2 agent skills, read and checked before they were published."),
        '/skills?q=one"': ('one" · Skills', '1 agent skill for “one"”, read and checked before it was published.'),
        "/publishers/acme": ("acme", "2 agent skills of acme, each with its verdict and the checks behind it."),
        "/collections": ("Collections", "Sets of agent skills that the operators of this registry put together."),
        "/collections/our-team": ('The "A & B" <set>', "For the day of a release."),
        "/skills/one": ("one", "No known pattern. "),
        "/skills/one/scan": ("Scan of one 0.0.1", "A registry of agent skills"),
    }
    for path, (title, description) in wanted.items():
        preview = previewed(client, path)
        assert preview["title"] == title
        assert preview["description"].startswith(description)
        assert preview["url"] == f"{env.public_url}{path}".replace('"', "%22")
        assert preview["image"].startswith(f"{env.public_url}/static/vskill/preview")
        assert preview["twitter:card"] == "summary_large_image"


class Counted:
    """A text that knows how often it was drawn."""

    drawn = 0

    def __str__(self) -> str:
        """Return the text."""
        self.drawn += 1
        return 'A "text" of <its> own'


def test_a_page_draws_its_title_and_description_once(env: WorkerEnv, rf: RequestFactory) -> None:
    title, description = Counted(), Counted()
    written = (
        '{% extends "base.html" %}{% load sharing %}{% block title %}{{ title }} · vskill{% endblock %}'
        "{% block description %}{{ description }}{% endblock %}{% block preview %}{% preview %}{% endblock %}"
    )
    render = engines["django"].from_string(written).render
    page = run_with_worker_env(env, render, {"title": title, "description": description}, rf.get("/"))
    escaped = "A &quot;text&quot; of &lt;its&gt; own"
    assert page.count(escaped) == 4
    assert f"<title>{escaped} · vskill</title>" in page
    assert f'<meta property="og:title" content="{escaped}">' in page
    assert (title.drawn, description.drawn) == (1, 1)
