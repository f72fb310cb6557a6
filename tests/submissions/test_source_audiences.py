"""To whom the skills of a source are shown by policy: when they are published, before, and while they are found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured
from django.test import Client, override_settings

from marketplace.models import SkillEntry
from submissions.models import SubmissionEntry
from submissions.source_audiences import audience_of_source, is_unseen, unseen_rows
from submissions.states import State
from tests.git_factory import make_repository
from tests.submissions.factories import make_submission
from tests.submissions.front_door import drain, skills
from tests.vskill.sign_in.test_access import signed_in
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import make_token
from vskill.accounts.audiences import MEMBERS, PUBLIC, seen_as, team_audience
from vskill.accounts.teams import add_members, create_team
from vskill.environments import WorkerEnv, build_environment, get_environment

pytestmark = pytest.mark.django_db(transaction=True)

URL: Final = "https://git.corp.example/hr/salaries"
ASKED: Final[dict[str, Any]] = {"content_type": "application/json"}


@pytest.fixture
def corp(tmp_path: Path) -> Iterator[WorkerEnv]:
    """Return a registry whose policy shows what one owner publishes to a team; its host is a folder here."""
    (tmp_path / "hr").mkdir()
    make_repository(tmp_path / "hr" / "salaries", skills("flamingo-pay"))
    policy = {
        "source_rewrites": [["https://git.corp.example/", f"file://{tmp_path}/"]],
        "audiences": {"git.corp.example/hr": "hr"},
    }
    with override_settings(VSKILL_ENVIRONMENTS={"default": {"hosts": ["testserver"], "policy": policy}}):
        yield get_environment("default")


def program(env: WorkerEnv, name: str, team: str) -> Client:
    """Return the client of a program that reads and submits for a member of a team."""
    client = signed_in("submitter", name=name)
    create_team(env, team)
    add_members(env, team, [name])
    owner = get_user_model()._default_manager.get(pk=client.session["_auth_user_id"])
    token = make_token(env, owner, name="x", scopes=[Scope.READ, Scope.SUBMIT])[1]
    return Client(headers={"Authorization": f"Bearer {token}"})


def rules(**policy: Any) -> WorkerEnv:
    options = {"secrets": {"one": "ONE"}, "policy": policy}
    return build_environment("default", options, {"ONE": "word"})


def test_nobody_else_submits_from_a_source_of_a_team_or_learns_of_what_is_submitted(corp: WorkerEnv) -> None:
    mate, other, stranger = program(corp, "mate", "hr"), program(corp, "other", "sales"), Client()
    for client in (other, stranger):
        for path in ("/api/v1/submissions", "/api/v1/listings", "/api/v1/jobs"):
            answer = client.post(path, {"repoUrl": URL, "dryRun": True}, **ASKED)
            nothing = client.post(path, {"repoUrl": f"{URL}-not", "dryRun": True}, **ASKED)
            assert answer.json() == nothing.json()
            assert (answer.status_code, answer.json()["error"]) == (422, "repository_not_found"), answer.content
        assert b"not shown to this registry" in client.post("/submit", {"repository_url": URL}).content
    assert not SubmissionEntry.objects.exists()

    listing = mate.post("/api/v1/listings", {"repoUrl": URL}, **ASKED).json()["id"]
    taken = mate.post("/api/v1/submissions", {"repoUrl": URL}, **ASKED)
    assert taken.status_code == 202, taken.content
    submission = taken.json()["id"]
    pages = (f"/api/v1/submissions/{submission}", f"/submissions/{submission}", f"/api/v1/listings/{listing}")

    def seen() -> list[list[Any]]:
        return [
            [
                *(client.get(path).status_code for path in pages),
                len(client.get("/api/v1/submissions").json()["items"]),
                "flamingo" in client.get("/queue").content.decode(),
            ]
            for client in (mate, other, stranger)
        ]

    # While it waits, and once it is published.
    assert seen() == [[200, 200, 200, 1, True], [404, 404, 404, 0, False], [404, 404, 404, 0, False]]
    async_to_sync(drain)(corp)
    assert seen() == [[200, 200, 200, 1, True], [404, 404, 404, 0, False], [404, 404, 404, 0, False]]
    row = SkillEntry.objects.get()
    assert row.audience == audience_of_source(corp, URL)
    found = [client.get(f"/api/v1/skills/{row.slug}").status_code for client in (mate, other, stranger)]
    assert found == [200, 404, 404]


def test_the_longest_place_counts_and_credentials_have_an_audience_where_none_is_named() -> None:
    env = rules(
        audiences={"git.corp.example": "members", "git.corp.example/open": "public", "github.com/Acme/x": "gone"},
        source_credentials={"git.corp.example": {"kind": "token", "secret": "one"}},
        credential_audience="members",
        source_ssh_keys={
            "ssh.corp.example/a": {"key_file": "/a/key", "known_hosts_file": "/a/hosts"},
        },
    )
    hidden = team_audience(0)
    assert {
        url: audience_of_source(env, f"https://{url}")
        for url in (
            *("git.corp.example/hr/x", "git.corp.example/open/x", "github.com/acme/x.git", "github.com/acme/other"),
            *("ssh.corp.example/a/b", "ssh.corp.example/b/b", "elsewhere.example/a/b"),
        )
    } == {
        "git.corp.example/hr/x": MEMBERS,
        "git.corp.example/open/x": PUBLIC,
        # A team that is not there is nobody, and never everybody.
        "github.com/acme/x.git": hidden,
        "github.com/acme/other": PUBLIC,
        "ssh.corp.example/a/b": MEMBERS,
        "ssh.corp.example/b/b": PUBLIC,
        "elsewhere.example/a/b": PUBLIC,
    }


def test_what_is_read_from_a_mirror_with_a_credential_or_a_key_has_that_audience_by_its_own_address() -> None:
    files = {"key_file": "/a/key", "known_hosts_file": "/a/hosts"}
    env = rules(
        source_rewrites=[
            ["https://github.com/acme/", "https://ssh.github.com/acme/"],
            ["https://git.corp.example/", "https://mirror.corp.example/git"],
            ["https://open.example/", "https://mirror.example/open/"],
            ["https://here.example/", "file:///srv/git/"],
        ],
        source_credentials={"mirror.corp.example/git/hr": {"kind": "token", "secret": "one"}},
        source_ssh_keys={"ssh.github.com": files, "mirror.example/other": files},
        credential_audience="members",
    )
    urls = [
        *("https://github.com/acme/x", "https://github.com/other/x", "https://git.corp.example/hr/x"),
        *("https://git.corp.example/open/x", "https://open.example/a/x", "https://here.example/a/x"),
    ]
    assert [audience_of_source(env, url) for url in urls] == [MEMBERS, PUBLIC, MEMBERS, PUBLIC, PUBLIC, PUBLIC]


def test_lists_leave_out_what_is_not_to_be_seen_in_whichever_way_it_is_written() -> None:
    env = rules(
        audiences={"git.corp.example": "members", "git.corp.example/open": "public", "github.com/acme": "members"}
    )
    urls = [
        *("https://git.corp.example/hr/x", "https://git.corp.example/open/x", "https://git.corp.example/opened/x"),
        *("https://github.com/acme/x", "https://github.com/acme2/x", "https://git.corp.example.org/hr/x"),
        *("https://github.com/ACME/x", "file:///git.corp.example/x", "https://git.corp.example/Open/x"),
    ]
    for url in urls:
        make_submission(env, State.ON_HOLD, repoUrl=url)

    def left() -> set[str]:
        condition = unseen_rows(env)
        rows = SubmissionEntry.objects.all()
        shown = rows if condition is None else rows.exclude(condition)
        return set(shown.values_list("repo_url", flat=True))

    assert left() == {url for url in urls if not is_unseen(env, url)}
    assert len(left()) == 4
    with seen_as((MEMBERS,)):
        assert left() == set(urls)


@pytest.mark.parametrize(
    "policy",
    [
        {"audiences": {"https://git.corp.example": "members"}},
        {"audiences": {"git.corp.example": "Human Resources"}},
        {"audiences": {"git.corp.example": ""}},
        {"audiences": {"user@git.corp.example": "hr"}},
        {"audiences": ["git.corp.example"]},
        {"credential_audience": "HR!"},
        {"credential_audience": 1},
    ],
)
def test_a_policy_that_names_no_place_or_no_audience_is_refused(policy: dict[str, Any]) -> None:
    with pytest.raises(ImproperlyConfigured, match="audience"):
        rules(**policy)
