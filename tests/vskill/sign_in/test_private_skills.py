"""A skill that is not public: every route and every client, as whoever may see it and as whoever may not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from marketplace.catalog import unyank, yank_version
from marketplace.models import Collection, CollectionSkill, HistoryEvent, LogLeaf, SkillEntry, SkillVersion
from marketplace.provenance.signing import sign_published
from marketplace.skills.audience import show_to
from marketplace.skills.count_check import wrong_counts
from marketplace.skills.downloads import count_download_sync
from marketplace.skills.publishers import publisher_of, skill_identity
from marketplace.visitor_reports.reports import ReportReason, report
from submissions.states import State
from tests.marketplace.factories import publish_example
from tests.private_walk import Asked, answers, every_request
from tests.submissions.factories import make_submission
from tests.vskill.sign_in.test_access import signed_in
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import make_token
from vskill.accounts.audiences import MEMBERS, PUBLIC, seen_as, team_audience
from vskill.environments import WorkerEnv
from vskill.models import Team

pytestmark = pytest.mark.django_db(transaction=True)

PRIVATE: Final = "zanzibar-heron"
OPEN: Final = "open-skill"
REPOSITORY: Final = "https://git.corp.example/hr-people/quarry"
# Words of its texts, which nothing else has, and nobody asks for.
WORDS: Final = ("Flamingo salaries", "bursar", "hrtool", "Rare-1.0", "payroll", "flamingo.py")
# What shows every skill that may be seen, one request for each surface at least.
SHOWING: Final = (
    *(
        Asked("get", path)
        for path in (
            *(
                "/",
                "/skills",
                "/skills?q={word}",
                "/skills?sort=name",
                "/skills?publisher={handle}",
                "/skills?view=table",
            ),
            *("/skills?capability={capability}", "/skills?license={license}", "/skills?q={word}&sort=name"),
            *("/skills/{slug}", "/skills/{slug}/scan", "/skills/{slug}/files", "/skills/{slug}/files/SKILL.md"),
            *("/skills/{slug}/report", "/skills/{slug}/card", "/skills/{slug}/compare", "/skills/{slug}/scan-again"),
            *("/publishers/{handle}", "/publishers/{handle}/feed.atom", "/publishers/{handle}/marketplace.json"),
            *("/feeds/new.atom", "/feeds/updated.atom", "/marketplace.json", "/skills/{slug}/marketplace.json"),
            *("/collections/everything", "/collections/everything/marketplace.json", "/api/v1/collections/everything"),
            *("/compare?skill={slug}", "/oembed?url=http://127.0.0.1:8000/skills/{slug}", "/reports/{report}"),
            *("/skills/{slug}/download/{version}.zip", "/skills/{slug}/download/{version}.tar.gz"),
            *("/api/v1/download?slug={slug}", "/api/v1/skills", "/api/v1/skills?q={word}", "/api/v1/skills?tag={tag}"),
            *("/api/v1/skills/{slug}", "/api/v1/skills/{slug}/versions", "/api/v1/skills/{slug}/install"),
            *("/api/v1/skills/{slug}/verify", "/api/v1/skills/{slug}/provenance", "/api/v1/skills/{slug}/scans"),
            *("/api/v1/skills/{handle}/{repo}/{slug}", "/api/v1/skills/{slug}/file?path=SKILL.md"),
            "/api/v1/skills/{slug}/alike",
            *("/api/v1/search?q={word}", "/api/search?q={word}", "/api/v1/skills/search?q={word}"),
            *("/skills/{slug}/.well-known/agent-skills/index.json", "/{handle}/.well-known/agent-skills/index.json"),
            "/collections/everything/.well-known/agent-skills/index.json",
            *("/submissions/{submission}", "/api/v1/submissions", "/api/v1/submissions/{submission}"),
            *("/queue?group=published", "/queue?repository={url}", "/api/v1/skills/-/scan/{scan}"),
            *("/api/v1/skills/-/scan/{scan}/download", "/api/v1/skills/-/scan/download/{slug}?version={version}"),
        )
    ),
    *(one for one in every_request() if one.path == "/mcp" and re.search("/list|/get|/call", one.data)),
)
NEVER_SHOWING: Final = tuple(Asked("get", path) for path in ("/sitemap.xml", "/sitemap/0", "/api/v1/log/entries"))
OF_A_SKILL: Final = (
    *("/skills/{}", "/skills/{}/scan", "/skills/{}/files", "/skills/{}/files/SKILL.md", "/skills/{}/card"),
    *("/skills/{}/download/0.0.1.zip", "/api/v1/download?slug={}", "/api/v1/skills/{}", "/api/v1/skills/{}/install"),
    *("/skills/{}/.well-known/agent-skills/index.json", "/skills/{}/marketplace.json", "/skills/{}/badge.svg"),
    *("/skills/{}/versions/0.0.1/marketplace.json", "/skills/{}/versions/0.0.1/.well-known/agent-skills/index.json"),
    "/git/acme/{}.git/info/refs?service=git-upload-pack",
)
LISTS: Final = (
    *("/", "/skills", "/skills?q=open", "/api/v1/skills", "/api/v1/search?q=open", "/feeds/new.atom"),
    *("/publishers/acme", "/marketplace.json", "/collections/everything"),
)
_NUMBERS: Final = re.compile(r'name="csrfmiddlewaretoken" value="\w+"|<time[^>]*>[^<]*|\d\d:\d\d:\d\d[\d.+:Z]*')


People = Callable[[str, str, str], Client]


@dataclass(frozen=True)
class Private:
    """A private skill: what is asked about it, and what nobody else may read of it."""

    about: dict[str, str]
    secrets: tuple[str, ...]

    def in_body(self, asked: Asked, body: str) -> list[str]:
        """Return the words of it that a body has and whoever asked for it did not say."""
        said = asked.path.format(**self.about)
        return [word for word in self.secrets if word.lower() in body.lower() and word not in said]


def publish_open(env: WorkerEnv) -> Collection:
    """Publish a skill for everybody, in a collection."""
    publish_example(env, name=OPEN)
    everything = Collection.objects.create(namespace=env.name, slug="everything", title="Everything")
    CollectionSkill.objects.create(collection=everything, skill=SkillEntry.objects.get(slug=OPEN), position=0)
    return everything


def publish_private(env: WorkerEnv, everything: Collection, audience: str) -> Private:
    """Publish a skill for an audience, in a collection, with its submission and a report of it."""
    path = f"skills/{PRIVATE}"
    identity = skill_identity(REPOSITORY, path)
    submission = make_submission(
        env, State.PUBLISHED, repoUrl=REPOSITORY, skillName=PRIVATE, skillPath=path, identity=identity, slug=PRIVATE
    )
    made = publish_example(
        env,
        name=PRIVATE,
        description="Flamingo salaries of the bursar.",
        submission_id=submission.id,
        repo_url=REPOSITORY,
        skill_path=path,
        license="Rare-1.0",
        capabilities=("hrtool",),
        metadata={"tags": "payroll"},
        audience=audience,
        files={
            "SKILL.md": f"---\nname: {PRIVATE}\ndescription: Flamingo salaries of the bursar.\n---\n\nCount them.\n",
            "flamingo.py": "print(1)\n",
        },
    )
    told: dict[str, Any] = {"reason": ReportReason.OTHER, "evidence": "It counts wrong, always.", "contact": ""}
    with seen_as((audience,)):
        reference = report(env, PRIVATE, "", **told)
    CollectionSkill.objects.create(collection=everything, skill=SkillEntry.objects.get(slug=PRIVATE), position=1)
    version = SkillVersion.objects.get(skill__slug=PRIVATE)
    count_download_sync(env, version.skill_id, version.version)
    about = {
        "slug": PRIVATE,
        "word": "flamingo",
        "capability": "hrtool",
        "license": "Rare-1.0",
        "tag": "payroll",
        "start": "zanz",
        "handle": publisher_of(REPOSITORY).handle,
        "repo": "quarry",
        "url": REPOSITORY,
        "version": made.version,
        "submission": submission.id,
        "report": reference,
        "fingerprint": version.fingerprint,
        "scan": f"scan-{version.pk}-1",
    }
    digests = (version.zip_sha256, version.tar_sha256, version.content_hash, version.commit_sha, identity)
    return Private(about, (*WORDS, *digests))


def absent() -> dict[str, str]:
    """Return what is asked about something that is not there, in the form of what is."""
    return {
        "version": "0.0.1",
        "slug": "zanzibar-huron",
        "word": "flamenca",
        "capability": "hrtaal",
        "license": "Rure-1.0",
        "tag": "payrall",
        "start": "zanx",
        "handle": "hr-peuple.git.corp.example",
        "repo": "quorry",
        "url": "https://git.corp.example/hr-people/quorry",
        "submission": f"sub_{'0' * 32}",
        "report": "rep_" + "0" * 32,
        "fingerprint": "0" * 64,
        "scan": "scan-4000000-1",
    }


def lines(answer: tuple[int, str], about: dict[str, str]) -> set[str]:
    """Return an answer by its lines, without what was asked for and what differs from one answer to the next."""
    status, body = answer
    written = {*about.values(), *(quote(one, safe="") for one in about.values())}
    for value in sorted(written, key=len, reverse=True):
        body = re.sub(rf"(?<![\w-]){re.escape(value)}(?![\w-])", "ASKED", body)
    return {str(status), *_NUMBERS.sub("", body).splitlines()}


@pytest.fixture
def people(env: WorkerEnv) -> People:
    """Return a function that makes an account with a team and a role, and returns its client."""

    def make(name: str, team: str, role: str) -> Client:
        client = signed_in(role, name=name)
        if team:
            found, _made = Team.objects.get_or_create(environment=env.name, name=team)
            found.members.add(get_user_model()._default_manager.get(username=name))
        return client

    return make


def audience_of(team: str) -> str:
    return team_audience(Team.objects.get(name=team).pk)


def with_token(env: WorkerEnv, name: str, scope: Scope = Scope.READ) -> Client:
    """Return the client of a program with a token of an account."""
    owner = get_user_model()._default_manager.get(username=name)
    token = make_token(env, owner, name="x", scopes=[scope])[1]
    return Client(raise_request_exception=False, headers={"Authorization": f"Bearer {token}"})


def test_nobody_outside_of_its_team_learns_of_a_skill_on_any_route(env: WorkerEnv, people: People) -> None:
    for name, team, role in (("mate", "hr", "viewer"), ("other", "sales", "submitter"), ("nobody", "", "")):
        people(name, team, role)
    everything = publish_open(env)
    # A token that is not made for reading brings its owner's team nowhere.
    outside = [
        (Client(raise_request_exception=False), every_request()),
        (with_token(env, "other"), every_request()),
        (with_token(env, "mate", Scope.SUBMIT), SHOWING),
        (with_token(env, "nobody"), SHOWING),
    ]
    nothing = [answers(client, absent(), requests) for client, requests in outside]
    private = publish_private(env, everything, audience_of("hr"))
    for (client, requests), before in zip(outside, nothing, strict=True):
        asked = answers(client, private.about, requests)
        assert {one: words for one, (_code, body) in asked.items() if (words := private.in_body(one, body))} == {}
        # Each answer is the one that a registry without the skill gives about something that is not there.
        for one, answer in asked.items():
            assert lines(answer, private.about) == lines(before[one], absent()), one


def test_nobody_outside_of_a_team_learns_on_any_route_of_what_was_submitted_for_it(
    env: WorkerEnv, people: People
) -> None:
    """The skill is on its way: it is not there for anybody, and its submission for its team alone."""
    mate, _other = people("mate", "hr", "submitter"), people("other", "sales", "submitter")
    publish_open(env)
    outside = [(Client(raise_request_exception=False), every_request()), (with_token(env, "other"), SHOWING)]
    nothing = [answers(client, absent(), requests) for client, requests in outside]
    path = f"skills/{PRIVATE}"
    submission = make_submission(
        env,
        State.ON_HOLD,
        repoUrl=REPOSITORY,
        skillName=PRIVATE,
        skillPath=path,
        identity=skill_identity(REPOSITORY, path),
        audience=audience_of("hr"),
        reason="Flamingo salaries",
    )
    private = Private({**absent(), "submission": submission.id, "url": REPOSITORY}, (PRIVATE, *WORDS))
    for (client, requests), before in zip(outside, nothing, strict=True):
        for one, answer in answers(client, private.about, requests).items():
            assert private.in_body(one, answer[1]) == [], one
            assert lines(answer, private.about) == lines(before[one], absent()), one
    for path in ("/submissions/{}", "/api/v1/submissions/{}", "/queue?group=held", f"/queue?repository={REPOSITORY}"):
        assert PRIVATE in mate.get(path.format(submission.id)).content.decode(), path


def test_its_team_finds_a_skill_wherever_a_public_one_is(env: WorkerEnv, people: People) -> None:
    mate = people("mate", "hr", "viewer")
    people("judge", "", "reviewer")
    private = publish_private(env, publish_open(env), audience_of("hr"))
    for client in (mate, with_token(env, "mate"), with_token(env, "judge")):
        asked = answers(client, private.about, (*SHOWING, *NEVER_SHOWING))
        for one in SHOWING:
            status, body = asked[one]
            assert status == 200, one
            assert PRIVATE in body or private.in_body(one, body), one
        # The map for crawlers and the log for everybody are public whoever asks.
        for one in NEVER_SHOWING:
            assert PRIVATE not in asked[one][1], one


def test_members_are_who_may_read_here(env: WorkerEnv, people: People) -> None:
    people("viewer", "", "viewer"), people("nobody", "", "")
    publish_private(env, publish_open(env), MEMBERS)
    found = [
        client.get(f"/api/v1/skills/{PRIVATE}").status_code
        for client in (Client(), with_token(env, "viewer"), with_token(env, "nobody"))
    ]
    assert found == [404, 200, 404]


def test_who_leaves_a_team_and_what_its_end_leaves_see_nothing_from_the_next_request_on(
    env: WorkerEnv, people: People
) -> None:
    mate = people("mate", "hr", "viewer")
    publish_private(env, publish_open(env), audience_of("hr"))
    page = f"/skills/{PRIVATE}"
    assert mate.get(page).status_code == 200
    hr = Team.objects.get(name="hr")
    hr.members.clear()
    assert mate.get(page).status_code == 404
    hr.members.add(get_user_model()._default_manager.get(username="mate"))
    assert mate.get(page).status_code == 200
    # Another team gets another number, whatever it is called.
    hr.delete()
    people("again", "hr", "viewer")
    assert [one.get(page).status_code for one in (mate, people("late", "hr", "viewer"))] == [404, 404]


def test_what_is_answered_to_somebody_is_kept_by_no_shared_cache(env: WorkerEnv, people: People) -> None:
    mate = people("mate", "hr", "viewer")
    publish_private(env, publish_open(env), audience_of("hr"))
    archive = f"/skills/{PRIVATE}/download/0.0.1.zip"
    for path in (archive, "/skills", "/api/v1/skills", "/marketplace.json", "/feeds/new.atom"):
        kept = mate.get(path).headers.get("Cache-Control", "")
        assert "public" not in kept, path
        assert "private" in kept or "no-store" in kept, path
    for client in (mate, Client()):
        for path in ("/skills", "/api/v1/skills", "/marketplace.json", f"/skills/{OPEN}/download/0.0.1.zip", archive):
            varies = {one.strip().lower() for one in client.get(path).headers.get("Vary", "").split(",")}
            assert {"cookie", "authorization"} <= varies, path
    lists = [client.get("/api/v1/skills").headers["ETag"] for client in (mate, Client())]
    assert lists[0] != lists[1]


def mapped(client: Client) -> str:
    """Return every part of the sitemap."""
    parts = re.findall(r"/sitemap/\w+", client.get("/sitemap.xml").content.decode())
    return "".join(client.get(part).content.decode() for part in parts)


def test_a_skill_is_closed_and_opened_for_every_surface_at_once(env: WorkerEnv) -> None:
    publish_open(env)
    publish_example(env, name="third-skill", body="Third.")
    client = Client()
    surfaces = {path: client.get(path).status_code for path in (one.format(OPEN) for one in OF_A_SKILL)}
    assert set(surfaces.values()) == {200}
    show_to(env, OPEN, MEMBERS, actor="operator", reason="it became ours")
    assert {client.get(path).status_code for path in surfaces} == {404}
    for path in LISTS:
        assert OPEN not in client.get(path).content.decode(), path
    assert OPEN not in mapped(client)
    assert wrong_counts(env) == []
    assert client.get("/api/v1/blocklist").json()["count"] == 0
    show_to(env, OPEN, PUBLIC, actor="operator", reason="everybody may have it")
    assert {client.get(path).status_code for path in surfaces} == {200}
    for path in LISTS:
        assert OPEN in client.get(path).content.decode(), path
    assert OPEN in mapped(client)
    assert [one["slug"] for one in client.get("/api/v1/skills?sort=newest").json()["items"]] == [OPEN, "third-skill"]
    assert wrong_counts(env) == []
    events = HistoryEvent.objects.filter(action__startswith="shown to").order_by("pk")
    assert [(one.action, one.reason) for one in events] == [
        ("shown to members", "it became ours"),
        ("shown to everybody", "everybody may have it"),
    ]


def test_the_log_tells_of_a_private_skill_when_it_is_opened_and_only_that_it_is_closed(env: WorkerEnv) -> None:
    private = publish_private(env, publish_open(env), MEMBERS)
    yank_version(env, PRIVATE, "0.0.1", actor="operator", reason="too early")

    def told() -> list[str]:
        sign_published(env)
        entries = Client().get("/api/v1/log/entries").json()["entries"]
        return [f"{one['type']} {one['skill']}" for entry in entries if (one := json.loads(entry["entry"]))]

    public = [f"published {OPEN}"]
    assert told() == public
    assert private.in_body(Asked("get", "/"), "".join(LogLeaf.objects.values_list("body", flat=True))) == []
    show_to(env, PRIVATE, PUBLIC, actor="operator", reason="open it")
    opened = [*public, f"published {PRIVATE}", f"yanked {PRIVATE}"]
    assert told() == opened
    show_to(env, PRIVATE, MEMBERS, actor="operator", reason="close it")
    unyank(env, PRIVATE, "0.0.1", actor="operator", reason="for us")
    assert told() == [*opened, f"closed {PRIVATE}"]
    show_to(env, PRIVATE, PUBLIC, actor="operator", reason="open it again")
    assert told() == [*opened, f"closed {PRIVATE}", f"opened {PRIVATE}"]


def test_install_lines_ask_for_a_token_where_clients_need_one_and_nowhere_else(env: WorkerEnv, people: People) -> None:
    mate = people("mate", "hr", "viewer")
    publish_private(env, publish_open(env), audience_of("hr"))
    for client, part, wanted in (
        (mate, f"skills/{PRIVATE}", True),
        (mate, f"skills/{OPEN}", False),
        # With what is private in it, and without.
        (mate, "collections/everything", True),
        (Client(), "collections/everything", False),
    ):
        install = client.get(f"/api/v1/{part}").json()["install"]
        assert {"TOKEN" in one["command"] for one in install if one["client"] != "mcp"} == {wanted}, part
        page = client.get(f"/{part}").content.decode()
        assert ("in the place of TOKEN" in page) == wanted, part
