"""Webhooks of git hosts: signed in the way of each, taken once, and otherwise refused in words with nothing written."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client, override_settings

from marketplace.following import follow_key, follow_namespace
from marketplace.models import FollowedEntry
from submissions.following.pace import LEAST_BETWEEN
from submissions.following.store import due_followed, follow, write_seen
from submissions.following.webhooks import SEEN_FOR, SEEN_PREFIX
from submissions.source_checks import check_sources
from tests.bench.webhooks import COMMITS, commits
from tests.submissions.following.followed import kept, make_due
from vskill.environments import WorkerEnv, build_environment, get_environment
from vskill.kv.clock import database_now
from vskill.kv.models import KVEntry
from vskill.web.request_limits import MAX_BODY_BYTES, MAX_WEBHOOK_BYTES

pytestmark = pytest.mark.django_db(transaction=True)

COMMON, TEAM = "the secret of everybody else", "the secret of the team alone"
STANDARD = f"whsec_{base64.b64encode(b'0123456789abcdef0123456789abcdef').decode()}"
GITHUB = "https://github.com/acme/skills"
GITLAB = "https://gitlab.example/group/skills"
GITEA = "https://git.example/team/skills"


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerEnv]:
    """Serve an environment that follows a repository of each host, and has a secret of its own for one owner."""
    for name, secret in (("HOOKS", COMMON), ("TEAM_HOOKS", TEAM), ("GITLAB_HOOKS", STANDARD)):
        monkeypatch.setenv(name, secret)
    options = {
        "hosts": ["testserver"],
        "secrets": {"webhooks": "HOOKS", "team": "TEAM_HOOKS", "gitlab": "GITLAB_HOOKS"},
        "policy": {"webhook_secrets": {"git.example/team": "team", "gitlab.example": "gitlab"}},
    }
    with override_settings(VSKILL_ENVIRONMENTS={"default": options}):
        found = get_environment("default")
        for url in (GITHUB, GITLAB, GITEA):
            follow(found, url, branch="", tags="", actor="test")
            _looked_at(found, url)
        yield found


def _looked_at(env: WorkerEnv, url: str) -> None:
    """Let a repository have been looked at long ago, and be due in a long while."""
    outcome = follow_namespace(env).get_sync(follow_key(url))
    later = database_now(env.database).replace(year=2090)
    one = kept(env, url)
    assert write_seen(env, outcome, _with(one, look_at=later, due_at=later)) is not None


def _with(one: Any, **changes: Any) -> Any:
    return type(one)(**{**{name: getattr(one, name) for name in one.__dataclass_fields__}, **changes})


@dataclass
class Hook:
    """A webhook as a git host makes it."""

    sender: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"

    def post(self, client: Client, **headers: str) -> Any:
        given = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        answer: Any = client.post(
            f"/api/v1/webhooks/{self.sender}", self.body, content_type=self.content_type, headers=given
        )
        return answer


def hexed(secret: str, body: bytes) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def github(secret: str = COMMON, *, url: str = GITHUB, event: str = "push", number: int = 1) -> Hook:
    body = json.dumps({"ref": "refs/heads/main", "number": number, "repository": {"clone_url": f"{url}.git"}}).encode()
    signed = {"X-Hub-Signature-256": f"sha256={hexed(secret, body)}", "X-GitHub-Delivery": f"d{number}"}
    return Hook("github", body, {**signed, "X-GitHub-Event": event})


def gitea(secret: str = TEAM, *, header: str = "X-Gitea-Signature", number: int = 1) -> Hook:
    body = json.dumps({"number": number, "repository": {"clone_url": f"{GITEA}.git"}}).encode()
    return Hook("gitea", body, {header: hexed(secret, body), "X-Gitea-Event": "push", "X-Gitea-Delivery": "1"})


def gitlab(env: WorkerEnv, secret: str = STANDARD, *, late: int = 0, signed: bool = True) -> Hook:
    body = json.dumps({"object_kind": "push", "project": {"git_http_url": f"{GITLAB}.git"}}).encode()
    headers = {"X-Gitlab-Event": "Push Hook", "webhook-id": "id-1"}
    if not signed:
        return Hook("gitlab", body, {**headers, "X-Gitlab-Token": secret})
    at = int(database_now(env.database).timestamp()) - late
    key = base64.b64decode(secret.removeprefix("whsec_")) if secret.startswith("whsec_") else secret.encode()
    digest = hmac.new(key, f"id-1.{at}.".encode() + body, hashlib.sha256).digest()
    signature = f"v1,{base64.b64encode(b'another').decode()} v1,{base64.b64encode(digest).decode()}"
    return Hook("gitlab", body, {**headers, "webhook-timestamp": str(at), "webhook-signature": signature})


def written() -> tuple[int, list[int]]:
    versions = FollowedEntry.objects.order_by("repo_url").values_list("version", flat=True)
    return KVEntry.objects.filter(key__startswith=SEEN_PREFIX).count(), list(versions)


def test_a_signed_push_of_each_host_makes_its_repository_due_once(env: WorkerEnv, client: Client) -> None:
    assert due_followed(env, 10) == []
    hooks = [github(), gitea(), gitlab(env)]
    for number, (hook, url) in enumerate(zip(hooks, (GITHUB, GITEA, GITLAB), strict=True), start=1):
        answer = hook.post(client)
        assert (answer.status_code, json.loads(answer.content)["repoUrl"]) == (202, url), answer.content
        assert len(due_followed(env, 10)) == number
    before = written()
    for hook in hooks:
        # Also under another id of the delivery, where that is not signed.
        again = hook.post(client, X_GitHub_Delivery="other", X_Gitea_Delivery="other")
        assert (again.status_code, json.loads(again.content)["error"]) == (409, "replayed")
    assert written() == before
    assert gitea(header="X-Forgejo-Signature", number=2).post(client).status_code == 202
    for entry in KVEntry.objects.filter(key__startswith=SEEN_PREFIX):
        assert entry.expires_at is not None
        assert entry.expires_at - database_now(env.database) <= SEEN_FOR
        assert "secret" not in entry.value
    form = urlencode({"payload": github(number=9).body.decode()}).encode()
    sent_as_form = Hook(
        "github",
        form,
        {"X-Hub-Signature-256": f"sha256={hexed(COMMON, form)}", "X-GitHub-Event": "push"},
        "application/x-www-form-urlencoded",
    )
    assert sent_as_form.post(client).status_code == 202


def test_the_largest_push_that_a_host_sends_is_taken(env: WorkerEnv, client: Client) -> None:
    listed = commits(COMMITS, GITHUB)
    # Half of a character, as where a message was cut.
    listed[1]["message"] = "\ud83d"
    for number, part in enumerate((listed, listed[:2])):
        told = {
            "ref": "refs/heads/main",
            "number": number,
            "commits": part,
            "repository": {"clone_url": f"{GITHUB}.git"},
        }
        body = json.dumps(told).encode()
        signed = {"X-Hub-Signature-256": f"sha256={hexed(COMMON, body)}", "X-GitHub-Event": "push"}
        # As large as a real one, and within what is taken.
        assert len(body) < MAX_WEBHOOK_BYTES
        assert number or len(body) > 4 * MAX_BODY_BYTES
        answer = Hook("github", body, signed).post(client)
        assert (answer.status_code, json.loads(answer.content)["repoUrl"]) == (202, GITHUB), answer.content
    assert GITHUB in due_followed(env, 10)


def test_a_push_soon_after_a_look_waits_a_little_and_the_plain_token_of_gitlab_is_taken(
    env: WorkerEnv, client: Client
) -> None:
    now = database_now(env.database)
    outcome = follow_namespace(env).get_sync(follow_key(GITLAB))
    write_seen(env, outcome, _with(kept(env, GITLAB), looked_at=now))
    assert gitlab(env, signed=False).post(client).status_code == 202
    one = kept(env, GITLAB)
    assert one.due_at is not None
    assert one.looked_at is not None
    assert one.due_at - one.looked_at == LEAST_BETWEEN
    # A push during a look is not lost: the look that ends writes what it saw, and the repository is due again.
    make_due(env, GITHUB)
    outcome = follow_namespace(env).get_sync(follow_key(GITHUB))
    assert github().post(client).status_code == 202
    later = now.replace(year=2090)
    seen = _with(kept(env, GITHUB), tips={"HEAD": "1" * 40}, asked_at=None, look_at=later, due_at=later)
    assert write_seen(env, outcome, seen) is not None
    assert kept(env, GITHUB).tips == {"HEAD": "1" * 40}
    assert GITHUB in due_followed(env, 10)


def test_what_is_not_signed_or_not_followed_is_refused_in_words_and_writes_nothing(
    env: WorkerEnv, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    before = written()
    other = github()
    other.body += b" "
    wrong = (
        github("guessed"),
        other,
        Hook("github", other.body, {"X-GitHub-Event": "push"}),
        github(TEAM),
        # The secret of everybody else is not that of the team, nor the other way round.
        gitea(COMMON),
        gitea("guessed"),
        gitlab(env, COMMON),
        gitlab(env, "guessed", signed=False),
        gitlab(env, late=400),
        gitlab(env, late=-400),
        Hook("gitlab", b"{}", {"webhook-signature": "v1,", "webhook-timestamp": "9" * 40, "webhook-id": "\u00e9"}),
        Hook("github", b"\xff" * 100, {"X-Hub-Signature-256": "sha256=\u00e9\u20ac"}),
    )
    for hook in wrong:
        answer = hook.post(client)
        assert (answer.status_code, json.loads(answer.content)["error"]) == (401, "wrong_signature"), hook
    never = github(url="https://github.com/acme/never").post(client)
    assert (never.status_code, json.loads(never.content)["message"]) == (
        404,
        "Nobody follows https://github.com/acme/never here. Nothing was written.",
    )
    for body in (b"[]", b"{", b"{}", b'{"repository": {"clone_url": "ext::sh"}}', b'{"repository": 1}', b"[" * 50_000):
        signed = {"X-Hub-Signature-256": f"sha256={hexed(COMMON, body)}", "X-GitHub-Event": "push"}
        answer = Hook("github", body, signed).post(client)
        assert (answer.status_code, json.loads(answer.content)["error"]) == (400, "malformed"), body[:50]
    assert github(event="issues").post(client).status_code == github(event="ping").post(client).status_code == 200
    assert client.post("/api/v1/webhooks/bitbucket", b"{}", content_type="application/json").status_code == 404
    assert client.get("/api/v1/webhooks/github").status_code == 405
    assert written() == before
    assert not any(secret in caplog.text for secret in (COMMON, TEAM, STANDARD))


def test_without_a_secret_no_webhook_is_taken_and_settings_name_secrets_and_hold_none(client: Client) -> None:
    answer = github().post(client)
    assert (answer.status_code, json.loads(answer.content)["error"]) == (404, "no_webhooks")
    for policy, says in (
        ({"git.example": "none"}, "not among the 'secrets'"),
        ({"https://git.example": "team"}, "no host"),
        ({"git.example": {"secret": "team"}}, "no name of a secret"),
        (["git.example"], "maps a host"),
    ):
        with pytest.raises(ImproperlyConfigured, match=says):
            build_environment("x", {"policy": {"webhook_secrets": policy}, "secrets": {"team": "T"}}, {"T": TEAM})
    for empty in ("", "whsec_"):
        with pytest.raises(ImproperlyConfigured, match="is empty"):
            build_environment("x", {"secrets": {"webhooks": "T"}}, {"T": empty})


def test_a_secret_that_can_be_guessed_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKS", "changeme")
    options = {"default": {"hosts": ["testserver"], "secrets": {"webhooks": "HOOKS"}}}
    with override_settings(VSKILL_ENVIRONMENTS=options):
        assert "submissions.W009" in [one.id for one in check_sources(None)]
