"""The admin of the marketplace and of entries: searched by indexes, changed with a reason, guarded by permissions."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from marketplace.catalog import rename_skill
from marketplace.models import HistoryEvent, SkillEntry, SkillVersion
from marketplace.skills.blocklist import BlockKind, add_block, is_blocked
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace

pytestmark = pytest.mark.django_db
SKILLS = "/admin/marketplace/skillentry/"
BLOCKS = "/admin/marketplace/blockentry/"
ENTRIES = "/admin/kv/kventry/"


def text_of(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return str(answer.content.decode())


def plans(queries: CaptureQueriesContext, *needles: str) -> list[str]:
    """Return the plan of each select that has all ``needles`` in it."""
    found = []
    explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN "
    for query in queries.captured_queries:
        if query["sql"].startswith("SELECT") and all(needle in query["sql"] for needle in needles):
            with connection.cursor() as cursor:
                cursor.execute(explain + query["sql"].replace("%", "%%"))
                found.append("\n".join(str(row) for row in cursor.fetchall()))
    return found


def test_skills_are_listed_and_former_names_apart(admin_client: Client, env: WorkerEnv) -> None:
    publish_example(env, name="old-name")
    rename_skill(env, "old-name", "new-name", actor="test", reason="clearer")

    assert "new-name" in text_of(admin_client, SKILLS)
    assert "old-name" not in text_of(admin_client, SKILLS)
    assert "alias:old-name" in text_of(admin_client, f"{SKILLS}?entries=aliases")


@pytest.mark.parametrize(
    ("term", "found"),
    [
        ("pdf", True),
        ("PDF-t", True),
        ("@acm", True),
        ("https://github.com/ac", True),
        ("tools", False),
        ("@mal", False),
    ],
)
def test_search_finds_by_the_beginning(admin_client: Client, env: WorkerEnv, term: str, found: bool) -> None:
    publish_example(env, name="pdf-tools")
    assert ("pdf-tools" in text_of(admin_client, f"{SKILLS}?q={term}")) is found


@pytest.mark.parametrize(
    ("query", "found"), [("visibility=visible", 1), ("visibility=deleted", 0), ("verdict=clear", 1)]
)
def test_filters_cut_the_list_down(admin_client: Client, env: WorkerEnv, query: str, found: int) -> None:
    publish_example(env)
    assert text_of(admin_client, f"{SKILLS}?{query}").count("field-shown_slug") == found


@pytest.mark.skipif(
    connection.vendor != "sqlite", reason="PostgreSQL reads a table of a few rows whole, whatever indexes it has"
)
def test_search_is_answered_by_an_index(admin_client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    for term in ("hello", "@acme", "https://github.com/acme"):
        with CaptureQueriesContext(connection) as queries:
            text_of(admin_client, f"{SKILLS}?q={term}")
        for plan in plans(queries, "marketplace_skillentry", "LIMIT 51"):
            assert "SEARCH marketplace_skillentry USING INDEX" in plan, plan


def test_a_quarantine_asks_for_a_reason_and_then_holds(admin_client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    pk = SkillEntry.objects.get().pk
    started = admin_client.post(SKILLS, {"action": "quarantine", "_selected_action": [pk]})
    assert started.status_code == 302
    address = started.headers["Location"]
    assert "hello-skill" in text_of(admin_client, address)

    assert "Give a reason" in admin_client.post(address, {"reason": " "}).content.decode()
    assert SkillEntry.objects.get().visibility == "visible"

    admin_client.post(address, {"reason": "steals keys"})
    assert SkillEntry.objects.get().visibility == "quarantined"
    event = HistoryEvent.objects.get(action="quarantined")
    assert (event.actor, event.reason) == ("admin", "steals keys")


def test_one_version_is_yanked_and_brought_back(admin_client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    publish_example(env, body="Second.")
    pk = SkillEntry.objects.get().pk
    page = text_of(admin_client, f"{SKILLS}{pk}/change/")
    assert f"operate/yank/?ids={pk}&amp;version=0.0.1" in page

    admin_client.post(f"{SKILLS}operate/yank/?ids={pk}&version=0.0.2", {"reason": "broken"})
    assert SkillEntry.objects.get().latest_version == "0.0.1"
    page = text_of(admin_client, f"{SKILLS}{pk}/change/")
    assert "yanked: broken" in page
    assert "<b>yanked</b> 0.0.2 broken" in page

    admin_client.post(f"{SKILLS}operate/unyank/?ids={pk}&version=0.0.2", {"reason": "it was not"})
    assert SkillEntry.objects.get().latest_version == "0.0.2"


def test_what_cannot_be_done_is_said(admin_client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    pk = SkillEntry.objects.get().pk
    answer = admin_client.post(f"{SKILLS}operate/yank/?ids={pk}&version=9.9", {"reason": "x"}, follow=True)
    assert "has no version" in answer.content.decode()


def test_reading_is_not_operating(client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    reader = User.objects.create_user("reader", password="reading only", is_staff=True)
    reader.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    client.force_login(reader)
    pk = SkillEntry.objects.get().pk

    assert "hello-skill" in text_of(client, SKILLS)
    assert client.get(f"{SKILLS}operate/quarantine/?ids={pk}").status_code == 403
    assert client.get(f"{BLOCKS}add/").status_code == 403
    assert client.post(f"{SKILLS}{pk}/change/", {"visibility": "deleted"}).status_code == 403
    assert SkillEntry.objects.get().visibility == "visible"


def test_hostile_texts_are_escaped(admin_client: Client, env: WorkerEnv) -> None:
    publish_example(env, description="<script>alert(1)</script>", metadata={"title": "<img src=x>"})
    pk = SkillEntry.objects.get().pk
    for address in (SKILLS, f"{SKILLS}{pk}/change/"):
        page = text_of(admin_client, address)
        assert "<script>alert" not in page
        assert "<img src=x" not in page


def test_a_damaged_value_is_shown_and_not_fatal(admin_client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE marketplace_skillentry SET value = %s", ["{broken"])
    pk = SkillEntry.objects.get().pk
    assert "Malformed" in text_of(admin_client, f"{SKILLS}{pk}/change/")
    assert "hello-skill" in text_of(admin_client, SKILLS)


def test_the_block_list_is_kept_in_the_admin(admin_client: Client, env: WorkerEnv) -> None:
    form: dict[str, Any] = {"kind": "owner", "value": "nonsense", "reason": "stolen keys"}
    assert "is not an owner" in admin_client.post(f"{BLOCKS}add/", form).content.decode()
    admin_client.post(f"{BLOCKS}add/", {**form, "value": "github.com/Mallory"})

    assert is_blocked(env, "https://github.com/mallory/skills") is not None
    page = text_of(admin_client, BLOCKS)
    assert "github.com/mallory" in page
    assert "stolen keys" in page

    pk = KVEntry.objects.get().pk
    started = admin_client.post(BLOCKS, {"action": "take_off", "_selected_action": [pk]})
    admin_client.post(started.headers["Location"], {"reason": "keys were revoked"})
    assert is_blocked(env, "https://github.com/mallory/skills") is None
    assert list(HistoryEvent.objects.order_by("id").values_list("action", "actor")) == [
        ("blocked", "admin"),
        ("unblocked", "admin"),
    ]


def test_entries_are_found_by_kind_and_by_the_beginning_of_their_key(admin_client: Client, env: WorkerEnv) -> None:
    namespace = KVNamespace(KVEntry, env)
    for key in ("repo-health:a", "repo-health:b", "recovery:sub_1", "bare"):
        namespace.put_sync(key, {"key": key})
    add_block(env, BlockKind.OWNER, "github.com/mallory", actor="test", reason="x")

    page = text_of(admin_client, ENTRIES)
    for kind in ("repo-health:", "recovery:", "blocked:", "bare"):
        assert f"?kind={kind.replace(':', '%3A')}" in page
    assert text_of(admin_client, f"{ENTRIES}?kind=repo-health%3A").count("field-key") == 2
    assert text_of(admin_client, f"{ENTRIES}?q=recovery:sub_").count("field-key") == 1


def test_an_expired_entry_is_marked_and_a_value_is_shown_for_reading(admin_client: Client, env: WorkerEnv) -> None:
    KVNamespace(KVEntry, env).put_sync("a", {"b": "<i>"})
    KVEntry.objects.update(expires_at="2020-01-01T00:00:00Z")

    assert "(expired)" in text_of(admin_client, ENTRIES)
    page = text_of(admin_client, f"{ENTRIES}{KVEntry.objects.get().pk}/change/")
    assert "&quot;b&quot;: &quot;&lt;i&gt;&quot;" in page


def test_a_value_that_no_response_can_encode_is_shown_with_its_escapes(admin_client: Client, env: WorkerEnv) -> None:
    KVNamespace(KVEntry, env).put_sync("a", {"b": "\ud800 縦"})

    page = text_of(admin_client, f"{ENTRIES}{KVEntry.objects.get().pk}/change/")
    assert "&quot;b&quot;: &quot;\\ud800 縦&quot;" in page


def test_another_environments_rows_are_not_shown(admin_client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    SkillEntry.objects.update(namespace="another")
    SkillVersion.objects.update(namespace="another")

    pk = SkillEntry.objects.get().pk
    assert "hello-skill" not in text_of(admin_client, SKILLS)
    assert admin_client.get(f"{SKILLS}{pk}/change/").status_code == 302
