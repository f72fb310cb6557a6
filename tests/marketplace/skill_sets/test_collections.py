"""Operators put skills together; visitors see what of them is offered now, and never what is withheld."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings

from marketplace.catalog import (
    delete_skill,
    quarantine_skill,
    quarantine_version,
    rename_skill,
    restore,
    unyank,
    yank_version,
)
from marketplace.flags import FlagKind, flag
from marketplace.models import Collection, CollectionSkill, HistoryEvent
from marketplace.skill_sets.editing import (
    MOST_SKILLS,
    Choice,
    CollectionChanged,
    InvalidCollection,
    Told,
    change_collection,
    create_collection,
    delete_collection,
    read_choices,
    written_choices,
)
from marketplace.skill_sets.reading import collections_of, find_collection, read_set, summaries
from marketplace.skills.moderation import ReasonMissing
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv, get_environment

pytestmark = pytest.mark.django_db(transaction=True)

WHO = {"actor": "test", "reason": "test"}
PAGE = "/collections/our-team"
INDEX = f"{PAGE}/.well-known/agent-skills/index.json"
API = "/api/v1/collections/our-team"
READ = ({"name": "skilltotal", "version": "0.84.0", "status": "complete"},)
ADMIN = "/admin/marketplace/collection/"


def told(*choices: Choice, title: str = "Our team's <set>") -> Told:
    return Told(title, "What we use at work.", choices)


@pytest.fixture
def made(env: WorkerEnv) -> Collection:
    """Return a collection of three skills: pinned to the first of two versions, following the latest, and alone."""
    publish_example(env, name="pdf-tools", declared_version="1.0.0", body="First.", capabilities=("shell_execution",))
    publish_example(env, name="pdf-tools", declared_version="2.0.0", body="Second.", capabilities=("network_egress",))
    publish_example(env, name="hello-skill", declared_version="1.0.0", capabilities=("filesystem_read",))
    publish_example(env, name="alone", declared_version="1.0.0", capabilities=(), engines=READ)
    choices = Choice("pdf-tools", "1.0.0", "For contracts; <b>ask</b> Ana."), Choice("hello-skill"), Choice("alone")
    return create_collection(env, "our-team", told(*choices), **WHO)


@pytest.fixture
def staff() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("root", "", "long enough to pass"))
    return client


def offered(env: WorkerEnv, collection: Collection) -> list[tuple[str, str]]:
    """Return what a collection offers, on which its page, its count, its index and the pages of skills agree."""
    found = read_set(env, collection)
    assert [one.offered for one in summaries(env, [collection])] == [len(found.members)]
    for one in found.members:
        assert collections_of(env, one.skill) == [collection]
    return [(one.skill.slug, one.version.version) for one in found.members]


def indexed(client: Client) -> list[str]:
    """Return the archives that the client skills would install."""
    answer = client.get(INDEX)
    return [one["url"] for one in answer.json()["skills"]] if answer.status_code == 200 else []


def test_a_collection_says_what_it_is_what_it_holds_and_what_that_touches(client: Client, made: Collection) -> None:
    page = client.get(PAGE).content.decode()
    assert "<h1>Our team&#x27;s &lt;set&gt;</h1>" in page
    assert page.index("pdf-tools") < page.index("hello-skill") < page.index("/skills/alone")
    assert "For contracts; &lt;b&gt;ask&lt;/b&gt; Ana." in page
    assert 'href="/skills/pdf-tools?version=1.0.0"' in page
    assert page.count("pinned to this version") == 1
    assert page.count("follows the latest version") == 2
    assert page.count("No known pattern") == 3
    assert "Files: touches it; Network: nothing seen; Commands: touches it; Secrets: nothing seen" in page
    assert "withdrawn" not in page
    assert indexed(client) == [
        "/skills/pdf-tools/download/1.0.0.tar.gz?listed",
        "/skills/hello-skill/download/1.0.0.tar.gz?listed",
        "/skills/alone/download/1.0.0.tar.gz?listed",
    ]
    said = client.get(API).json()
    assert [(one["slug"], one["version"], one["pinned"]) for one in said["skills"]] == [
        ("pdf-tools", "1.0.0", True),
        ("hello-skill", "1.0.0", False),
        ("alone", "1.0.0", False),
    ]
    assert said["touches"] == {"Files": True, "Network": False, "Commands": True, "Secrets": False, "The agent": False}
    assert said["skills"][0]["note"].startswith("For contracts")
    assert [one["client"] for one in said["install"]] == ["skills", "claude", "codex", "clawhub", "apm", "git", "curl"]
    assert client.get("/api/v1/collections").json()["items"][0]["skillCount"] == 3
    assert f'href="{PAGE}"' in client.get("/skills/pdf-tools").content.decode()
    for listing in ("/", "/collections"):
        assert f'href="{PAGE}"' in client.get(listing).content.decode()
    assert f"<loc>http://127.0.0.1:8000{PAGE}</loc>" in client.get("/sitemap/collections").content.decode()
    assert "/sitemap/collections" in client.get("/sitemap.xml").content.decode()


def test_what_follows_the_latest_moves_on_and_what_is_pinned_stays(env: WorkerEnv, made: Collection) -> None:
    for name in ("pdf-tools", "hello-skill"):
        publish_example(env, name=name, declared_version="3.0.0", body="Third.")
    assert offered(env, made) == [("pdf-tools", "1.0.0"), ("hello-skill", "3.0.0"), ("alone", "1.0.0")]
    yank_version(env, "hello-skill", "3.0.0", **WHO)
    assert offered(env, made) == [("pdf-tools", "1.0.0"), ("hello-skill", "1.0.0"), ("alone", "1.0.0")]


@pytest.mark.parametrize("how", [quarantine_skill, delete_skill], ids=["quarantined", "deleted"])
def test_a_skill_that_is_withheld_is_counted_and_named_nowhere(
    client: Client, env: WorkerEnv, made: Collection, how: Any
) -> None:
    how(env, "pdf-tools", **WHO)
    assert offered(env, made) == [("hello-skill", "1.0.0"), ("alone", "1.0.0")]
    page, said, index = (client.get(address).content.decode() for address in (PAGE, API, INDEX))
    assert "1 skill of this set was withdrawn" in page
    assert '"withdrawn":1' in said
    for text in (page, said, index):
        assert "pdf-tools" not in text
        assert "contracts" not in text
    restore(env, "pdf-tools", **WHO)
    assert len(offered(env, made)) == 3


def test_a_pinned_version_that_is_withdrawn_is_not_replaced_by_another(
    client: Client, env: WorkerEnv, made: Collection
) -> None:
    yank_version(env, "pdf-tools", "1.0.0", **WHO)
    assert [slug for slug, _version in offered(env, made)] == ["hello-skill", "alone"]
    assert f'href="{PAGE}"' not in client.get("/skills/pdf-tools").content.decode()
    unyank(env, "pdf-tools", "1.0.0", **WHO)
    assert offered(env, made)[0] == ("pdf-tools", "1.0.0")
    quarantine_version(env, "pdf-tools", "1.0.0", **WHO)
    quarantine_version(env, "hello-skill", "1.0.0", **WHO)
    assert offered(env, made) == [("alone", "1.0.0")]
    delete_skill(env, "alone", **WHO)
    page = client.get(PAGE).content.decode()
    assert "3 skills of this set were withdrawn" in page
    assert "This set offers no skill at the moment" in page
    assert "npx" not in page
    assert client.get(INDEX).status_code == 410
    assert client.get(API).json()["install"] == []


def test_what_must_be_read_first_is_shown_but_not_installed_with_the_rest(
    client: Client, env: WorkerEnv, made: Collection
) -> None:
    flag(env, "hello-skill", FlagKind.REPORT, "It sends keys.", actor="test")
    page = client.get(PAGE).content.decode()
    assert "It sends keys." in page
    assert "Left out, because its checks or a later warning say" in page
    assert indexed(client) == [
        "/skills/pdf-tools/download/1.0.0.tar.gz?listed",
        "/skills/alone/download/1.0.0.tar.gz?listed",
    ]
    said = client.get(API).json()
    assert [one["installedAsOne"] for one in said["skills"]] == [True, False, True]
    assert not any("hello-skill" in one["command"] for one in said["install"])


def test_a_skill_that_is_renamed_stays_under_its_new_name(client: Client, env: WorkerEnv, made: Collection) -> None:
    rename_skill(env, "hello-skill", "new-name", **WHO)
    assert offered(env, made)[1] == ("new-name", "1.0.0")
    assert "/skills/new-name" in client.get(PAGE).content.decode()
    # A former name leads to the skill, which is then held only once.
    with pytest.raises(InvalidCollection, match="'new-name' is named twice"):
        create_collection(env, "other", told(Choice("hello-skill"), Choice("new-name")), **WHO)
    assert find_collection(env, "other") is None


def test_nobody_has_looked_is_not_nothing_seen(client: Client, env: WorkerEnv, made: Collection) -> None:
    never_read: dict[str, Any] = {"capabilities": (), "engines": (), "verdict": "unscanned"}
    publish_example(env, name="alone", declared_version="2.0.0", body="Second.", **never_read)
    touched = client.get(API).json()["touches"]
    assert (touched["Files"], touched["Network"]) == (True, None)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL chooses its plans by the size of the tables")
def test_a_collection_reads_its_own_skills_and_no_others(env: WorkerEnv, made: Collection) -> None:
    for read in (lambda: read_set(env, made), lambda: summaries(env, [made])):
        with CaptureQueriesContext(connection) as statements:
            read()
        plans = []
        for one in statements.captured_queries:
            with connection.cursor() as cursor:
                cursor.execute("EXPLAIN QUERY PLAN " + one["sql"], [])
                plans += [str(row[-1]) for row in cursor.fetchall()]
        steps = [step for step in plans if "marketplace_skill" in step]
        assert len(steps) == 3
        assert all("PRIMARY KEY" in step or "skill_id=? AND version=?" in step for step in steps), steps


def test_an_unknown_collection_leads_to_near_names_and_an_empty_list_says_so(client: Client, env: WorkerEnv) -> None:
    assert "There is no collection yet" in client.get("/collections").content.decode()
    assert "/collections" not in client.get("/").content.decode()
    assert "collections" not in client.get("/sitemap.xml").content.decode()
    assert client.get("/sitemap/collections").status_code == 404
    create_collection(env, "our-team", told(), **WHO)
    assert "Its operator has not put any skill into it yet" in client.get(PAGE).content.decode()
    answer = client.get("/collections/our-taem")
    assert (answer.status_code, f'href="{PAGE}"' in answer.content.decode()) == (404, True)
    assert client.get("/collections/Our-Team").headers["Location"] == PAGE
    for address in ("/api/v1/collections/our-taem", "/collections/our-taem/.well-known/agent-skills/index.json"):
        answer = client.get(address)
        assert (answer.status_code, "Near names: our-team" in answer.content.decode()) == (404, True)
    for address in ("/collections?sort=x", f"{PAGE}?version=1", f"{API}?x=1", "/api/v1/collections?x=1"):
        assert client.get(address).status_code == 400
    assert client.get("/collections/" + "x" * 300).status_code == 404


def test_a_long_list_is_turned_over_to_its_end(client: Client, env: WorkerEnv) -> None:
    slugs = [f"set-{number:02}" for number in range(53)]
    for slug in reversed(slugs):
        create_collection(env, slug, told(title=slug), **WHO)
    page = client.get("/collections").content.decode()
    [following] = re.findall(r'href="(/collections\?cursor=[^"]+)" rel="next"', page)
    assert ("set-49" in page, "set-50" in page) == (True, False)
    Collection.objects.filter(slug="set-49").delete()
    last = client.get(following).content.decode()
    assert ([slug for slug in slugs if slug in last], "Back to the start" in last) == (slugs[50:], True)
    create_collection(env, "set-49", told(title="set-49"), **WHO)
    for forged in ("cursor=set-49", "cursor=WyJ4IiwxLDJd", "after=set-49"):
        assert client.get(f"/collections?{forged}").status_code == 400, forged
    found: list[str] = []
    cursor: str | None = ""
    for _page in range(3):
        answer = client.get(f"/api/v1/collections?limit=20&cursor={cursor}").json()
        found += [one["slug"] for one in answer["items"]]
        cursor = answer["nextCursor"]
    assert (found, cursor) == (slugs, None)


def test_an_operator_makes_changes_and_deletes_a_collection_and_each_is_in_the_history(
    client: Client, staff: Client, env: WorkerEnv, made: Collection
) -> None:
    form = {"title": "Second", "slug": "second", "purpose": "For tests.", "skills": "alone", "reason": "Asked for."}
    assert staff.post(f"{ADMIN}add/", form).status_code == 302
    second = Collection.objects.get(slug="second")
    change = f"{ADMIN}{second.pk}/change/"
    shown = staff.get(change).content.decode()
    assert "alone</textarea>" in shown
    assert "Asked for." in shown
    changed = {**form, "skills": "pdf-tools@2.0.0  Newer.\n\n  hello-skill", "revision": "1", "reason": "Newer ones."}
    assert staff.post(change, changed).status_code == 302
    assert written_choices(env, second) == "pdf-tools@2.0.0 Newer.\nhello-skill"
    # What was shown before somebody else's change overwrites nothing.
    stale = staff.post(change, {**changed, "skills": "alone"}).content.decode()
    assert "Somebody else changed or deleted this collection meanwhile" in stale
    assert written_choices(env, second) == "pdf-tools@2.0.0 Newer.\nhello-skill"
    listed = staff.get(ADMIN).content.decode()
    assert "second" in listed
    staff.post(f"{ADMIN}operate/delete/?ids={second.pk}", {"reason": "Done with."})
    assert client.get("/collections/second").status_code == 404
    events = HistoryEvent.objects.filter(subject="collection:second").order_by("id")
    assert [(one.action, one.actor, one.reason) for one in events] == [
        ("collection made", "root", "Asked for."),
        ("collection changed", "root", "Newer ones. (added pdf-tools, added hello-skill, took out alone)"),
        ("collection deleted", "root", "Done with."),
    ]


def test_what_an_operator_cannot_mean_is_refused_and_nothing_is_kept(
    staff: Client, env: WorkerEnv, made: Collection
) -> None:
    publish_example(env, name="withheld")
    quarantine_skill(env, "withheld", actor="test", reason="It steals.")
    publish_example(env, name="yanked", declared_version="1.0.0")
    yank_version(env, "yanked", "1.0.0", **WHO)
    form = {"title": "T", "slug": "new", "purpose": "P.", "skills": "", "reason": "R."}
    for wrong, says in (
        ({"skills": "nothing-here"}, "there is none of the name"),
        ({"skills": "alone\nalone"}, "is named twice"),
        ({"skills": "alone@9.9.9"}, "offers no version"),
        ({"skills": "withheld"}, "It steals."),
        ({"skills": "yanked"}, "has no version that is offered"),
        ({"skills": "yanked@1.0.0"}, "offers no version"),
        ({"skills": "@1.0.0"}, "Line 1 is no skill"),
        ({"skills": "\n".join(f"s{number}" for number in range(MOST_SKILLS + 1))}, "has at most 100"),
        ({"slug": "our-team"}, "There is a collection"),
        ({"slug": "Our Team"}, "is no address"),
        ({"reason": ""}, "This field is required"),
    ):
        answer = staff.post(f"{ADMIN}add/", {**form, **wrong})
        assert (answer.status_code, says in answer.content.decode()) == (200, True), (wrong, says)
    assert list(Collection.objects.values_list("slug", flat=True)) == ["our-team"]
    assert CollectionSkill.objects.count() == 3
    # What it holds already may stay, so that another line can be changed.
    quarantine_skill(env, "alone", **WHO)
    text = written_choices(env, made)
    change_collection(env, made, told(*read_choices(text), title="Ours"), revision=1, **WHO)
    assert written_choices(env, made) == text
    with pytest.raises(ReasonMissing):
        create_collection(env, "new", told(), actor="test", reason=" ")
    delete_collection(env, made, **WHO)
    with pytest.raises(CollectionChanged):
        delete_collection(env, made, **WHO)


def test_a_collection_is_of_one_environment() -> None:
    two = {"default": {"hosts": ["one.test"]}, "other": {"hosts": ["two.test"]}}
    with override_settings(VSKILL_ENVIRONMENTS=two, ALLOWED_HOSTS=["one.test", "two.test"]):
        first, second = get_environment("default"), get_environment("other")
        publish_example(first)
        made = create_collection(first, "our-team", told(Choice("hello-skill")), **WHO)
        with pytest.raises(InvalidCollection, match="there is none of the name"):
            create_collection(second, "our-team", told(Choice("hello-skill")), **WHO)
        assert create_collection(second, "our-team", told(), **WHO).pk != made.pk
        for host, count in (("one.test", 1), ("two.test", 0)):
            [listed] = Client(SERVER_NAME=host).get("/api/v1/collections").json()["items"]
            assert listed["skillCount"] == count
        with pytest.raises(CollectionChanged):
            delete_collection(second, made, **WHO)


def test_who_may_only_look_changes_nothing(env: WorkerEnv, made: Collection) -> None:
    looker = get_user_model().objects.create_user("looker", "", "long enough to pass", is_staff=True)
    looker.user_permissions.add(Permission.objects.get(codename="view_collection"))
    client = Client()
    client.force_login(looker)
    address = f"{ADMIN}{made.pk}/change/"
    assert "pdf-tools@1.0.0" in client.get(address).content.decode()
    form = {"title": "T", "slug": "new", "purpose": "P.", "skills": "", "reason": "R.", "revision": "1"}
    for place in (address, f"{ADMIN}add/", f"{ADMIN}operate/delete/?ids={made.pk}"):
        assert client.post(place, form).status_code == 403, place
    assert Collection.objects.get().revision == 1
