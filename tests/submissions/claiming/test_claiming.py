"""A publisher is claimed by whoever can write in its repositories, and by nobody else."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth import get_user_model
from django.db import connections
from django.test import Client, override_settings
from django.utils import timezone

from marketplace.models import HistoryEvent, PublisherClaim
from marketplace.ownership.claims import ClaimRefused, Proof, begin, end, grant, owner_claim, prove
from marketplace.ownership.rights import may_act_for
from marketplace.skills.publishers import publisher_of
from submissions.claiming.proofs import FILE
from tests.git_factory import commit, git, make_repository, skill_md
from tests.marketplace.factories import publish_example
from tests.submissions.source.https_host import CERTIFICATE, https_host
from vskill.accounts.roles import Role
from vskill.environments import WorkerEnv
from vskill.models import RoleGrant

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = "/account/publishers"
ACME = "https://github.com/acme/skills"


def account(name: str = "ada", role: str = "") -> Any:
    user: Any = get_user_model()._default_manager.create_user(name, password="long enough to pass")
    if role:
        RoleGrant.objects.create(
            user=user, environment="default", role=role, granted_by="root", granted_at=timezone.now()
        )
    return user


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """Make a repository of an owner, whose name is that of the folder above it."""
    (tmp_path / "acme").mkdir()
    return make_repository(tmp_path / "acme/skills.git", {"one/SKILL.md": skill_md("one")})


def begun(client: Client, repository: Path) -> PublisherClaim:
    answer: Any = client.post(PAGE, {"repository_url": f"file://{repository}"})
    assert (answer.status_code, answer.headers.get("Location")) == (302, PAGE), answer.content.decode()
    return PublisherClaim.objects.get(state="waiting")


def checked(client: Client, claim: PublisherClaim) -> Any:
    # As if the last look were long ago; ten seconds are not waited for.
    PublisherClaim.objects.filter(pk=claim.pk).update(checked_at=None)
    return client.post(PAGE, {"check": claim.pk})


def push_file(repository: Path, content: str, path: str = FILE, **how: Any) -> None:
    commit(repository, {"one/SKILL.md": skill_md("one"), path: content}, **how)


def test_the_page_says_what_to_do_and_a_file_proves_it(env: WorkerEnv, theirs: Path) -> None:
    user = account()
    client = signed_in(user)
    claim = begun(client, theirs)
    page = client.get(PAGE).content.decode()
    assert claim.code in re.sub(r"<[^>]+>", "", page)
    assert FILE in page
    assert "no branch of that name" in checked(client, claim).content.decode()
    assert not may_act_for(user, env, "local/acme")

    push_file(theirs, f"# for vskill\n{claim.code}\n")
    assert checked(client, claim).status_code == 302

    done = owner_claim(env, "local/acme")
    assert done is not None
    assert (done.proof, done.account_name) == (Proof.FILE, "ada")
    assert FILE in done.evidence
    assert may_act_for(user, env, "local/acme")
    assert "acme.local" in client.get(PAGE).content.decode()
    event = HistoryEvent.objects.get(subject="publisher:local/acme")
    assert (event.action, event.actor) == ("claimed", "ada")


def test_a_branch_of_that_name_proves_it(env: WorkerEnv, theirs: Path) -> None:
    client = signed_in(account())
    claim = begun(client, theirs)
    git(theirs, "branch", claim.code, "main")
    checked(client, claim)

    done = owner_claim(env, "local/acme")
    assert done is not None
    assert done.proof == Proof.BRANCH
    assert claim.code in done.evidence


def test_everybody_sees_on_the_publishers_page_whose_it_is(
    env: WorkerEnv, theirs: Path, client: Client, tmp_path: Path
) -> None:
    publish_example(env, repo_url=f"file://{theirs.with_suffix('')}")
    assert b"Claimed by" not in client.get("/publishers/acme.local").content
    owner = signed_in(account())
    claim = begun(owner, theirs)
    push_file(theirs, claim.code)
    checked(owner, claim)

    assert "Claimed by ada since" in client.get("/publishers/acme.local").content.decode()


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda theirs, code: push_file(theirs, code, branch="other"), id="on another branch"),
        pytest.param(lambda theirs, code: push_file(theirs, code, "docs/" + FILE), id="not at the root"),
        pytest.param(lambda theirs, code: push_file(theirs, f"x{code}"), id="a part of another word"),
        pytest.param(lambda theirs, code: push_file(theirs, code[:-1]), id="cut off"),
        pytest.param(lambda theirs, code: push_file(theirs, "x" * 5000 + f"\n{code}"), id="in a large file"),
        pytest.param(lambda theirs, code: git(theirs, "branch", f"x/{code}", "main"), id="the end of a branch's name"),
        pytest.param(lambda theirs, code: git(theirs, "tag", code, "main"), id="a tag"),
        pytest.param(
            lambda theirs, code: commit(theirs, {"code": code}, symlinks={FILE: "../code"}), id="behind a link"
        ),
        pytest.param(
            lambda theirs, code: git(theirs, "update-ref", f"refs/pull/1/{code}", "main"), id="a pull request"
        ),
    ],
)
def test_what_is_somewhere_else_proves_nothing(env: WorkerEnv, theirs: Path, spoil: Callable[[Path, str], Any]) -> None:
    client = signed_in(account())
    claim = begun(client, theirs)
    spoil(theirs, claim.code)

    assert checked(client, claim).status_code == 422
    assert owner_claim(env, "local/acme") is None


def test_a_code_in_a_repository_of_another_owner_proves_nothing(env: WorkerEnv, theirs: Path, tmp_path: Path) -> None:
    mallory = account("mallory")
    client = signed_in(mallory)
    claim = begun(client, theirs)
    (tmp_path / "mallory").mkdir()
    own = make_repository(tmp_path / "mallory/skills.git", {FILE: claim.code})
    # Its address cannot be exchanged: a claim of another owner is another claim.
    client.post(PAGE, {"repository_url": f"file://{own}"})
    assert checked(client, claim).status_code == 422
    # Not even by somebody who writes in the table.
    PublisherClaim.objects.filter(pk=claim.pk).update(repo_url=f"file://{own.with_suffix('')}")
    assert "is not a repository of local/acme" in checked(client, claim).content.decode()

    assert owner_claim(env, "local/acme") is None
    assert not may_act_for(mallory, env, "local/acme")


def test_the_code_of_one_account_proves_nothing_for_another(env: WorkerEnv, theirs: Path) -> None:
    ada, mallory = signed_in(account()), signed_in(account("mallory"))
    claim = begun(ada, theirs)
    push_file(theirs, claim.code)
    mallory.post(PAGE, {"repository_url": f"file://{theirs}"})
    other = PublisherClaim.objects.get(account_name="mallory")

    assert other.code != claim.code
    assert checked(mallory, other).status_code == 422
    # Nor can somebody else's claim be checked or given up.
    assert "no such claim of yours" in mallory.post(PAGE, {"check": claim.pk}).content.decode()
    assert mallory.post(PAGE, {"end": claim.pk}).status_code == 422
    assert checked(ada, claim).status_code == 302


def test_a_code_lapses(env: WorkerEnv, theirs: Path) -> None:
    client = signed_in(account())
    claim = begun(client, theirs)
    push_file(theirs, claim.code)
    PublisherClaim.objects.filter(pk=claim.pk).update(expires_at=timezone.now() - timedelta(seconds=1))

    assert "may have lapsed" in checked(client, claim).content.decode()
    assert claim.code not in client.get(PAGE).content.decode()
    with pytest.raises(ClaimRefused, match="has lapsed"):
        prove(env, claim, Proof.FILE, "as if the fetch had taken three days")
    assert begun(client, theirs).code != claim.code


def test_a_proven_code_counts_once(env: WorkerEnv, theirs: Path) -> None:
    user = account()
    client = signed_in(user)
    claim = begun(client, theirs)
    push_file(theirs, claim.code)
    checked(client, claim)
    client.post(PAGE, {"end": claim.pk})

    assert owner_claim(env, "local/acme") is None
    assert not may_act_for(user, env, "local/acme")
    again = begun(client, theirs)
    assert again.code != claim.code
    assert checked(client, again).status_code == 422


def test_a_publisher_that_is_claimed_is_not_claimed_again(env: WorkerEnv, theirs: Path) -> None:
    grant(env, account(), "local/acme", "acme.local", actor="op", reason="known to us")
    answer = signed_in(account("mallory")).post(PAGE, {"repository_url": f"file://{theirs}"})

    assert answer.status_code == 422
    assert "local/acme is claimed by ada already" in answer.content.decode()
    assert PublisherClaim.objects.count() == 1


def test_of_two_accounts_that_prove_at_once_one_has_it_and_the_other_is_told(env: WorkerEnv) -> None:
    claims = [begin(env, account(name), ACME) for name in ("ada", "grace")]
    start = threading.Barrier(2)
    results: list[str] = []

    def race(claim: PublisherClaim) -> None:
        try:
            start.wait()
            prove(env, claim, Proof.FILE, "both have put it there")
            results.append("proven")
        except ClaimRefused as error:
            results.append(str(error))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=race, args=[claim]) for claim in claims]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    first, second = sorted(results, reverse=True)
    assert first == "proven"
    assert re.match(r"github.com/acme is claimed by (ada|grace) already", second)
    assert PublisherClaim.objects.filter(state="proven").count() == 1
    assert HistoryEvent.objects.filter(action="claimed").count() == 1


def test_the_host_is_not_asked_again_at_once(env: WorkerEnv, theirs: Path) -> None:
    client = signed_in(account())
    claim = begun(client, theirs)
    client.post(PAGE, {"check": claim.pk})

    assert "Wait ten seconds" in client.post(PAGE, {"check": claim.pk}).content.decode()


def redirect(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
    handler.send_response(301)
    handler.send_header("Location", handler.path.replace("/moved/", "/acme/"))
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def test_a_repository_that_was_moved_to_another_owner_proves_nothing(env: WorkerEnv, tmp_path: Path) -> None:
    (tmp_path / "acme").mkdir()
    moved = make_repository(tmp_path / "acme/skills.git", {"one/SKILL.md": skill_md("one")})
    with https_host(tmp_path) as host:
        place = f"127.0.0.1:{host.port}"
        policy = {"source_private_hosts": [place], "source_ca_file": str(CERTIFICATE)}
        options = {"hosts": ["testserver"], "policy": policy}
        with override_settings(VSKILL_ENVIRONMENTS={"default": options}):
            mallory = signed_in(account("mallory"))
            host.answers["/moved/"] = redirect
            # The host answers for it with a redirect to the repository of "acme".
            mallory.post(PAGE, {"repository_url": f"https://{place}/moved/skills"})
            claim = PublisherClaim.objects.get()
            push_file(moved, claim.code)
            answer = checked(mallory, claim)

            assert answer.status_code == 422
            assert "redirect" in answer.content.decode() or "moved" in answer.content.decode()
            assert owner_claim(env, f"{place}/moved") is None
            assert any(path.startswith("/moved/") for path in host.requests)
            assert not any(path.startswith("/acme/") for path in host.requests)
            # Its owner proves it at the same place, over https.
            owner = signed_in(account())
            owner.post(PAGE, {"repository_url": f"https://{place}/acme/skills"})
            honest = PublisherClaim.objects.get(account_name="ada")
            git(moved, "branch", honest.code, "main")
            assert checked(owner, honest).status_code == 302
    assert owner_claim(env, f"{place}/acme") is not None


def test_a_repository_that_cannot_be_read_is_told(env: WorkerEnv, theirs: Path) -> None:
    client = signed_in(account())
    claim = begun(client, theirs)
    theirs.rename(theirs.with_name("gone.git"))

    answer = checked(client, claim)
    assert answer.status_code == 422
    assert owner_claim(env, "local/acme") is None
    assert PublisherClaim.objects.get().state == "waiting"


@pytest.mark.parametrize("sent", [{"repository_url": ""}, {"repository_url": "x" * 2000}, {"check": "x"}, {"end": "9"}])
def test_what_cannot_be_meant_is_refused(client: Client, sent: dict[str, str]) -> None:
    assert signed_in(account()).post(PAGE, sent).status_code == 422
    assert not PublisherClaim.objects.exists()


def test_so_many_claims_wait_at_most(env: WorkerEnv) -> None:
    user = account()
    for number in range(10):
        begin(env, user, f"https://github.com/owner-{number}/skills")
    with pytest.raises(ClaimRefused, match="10 claims of yours wait already"):
        begin(env, user, ACME)


def test_a_stranger_is_led_to_the_sign_in_and_begins_nothing(client: Client, theirs: Path) -> None:
    for answer in (client.get(PAGE), client.post(PAGE, {"repository_url": f"file://{theirs}"})):
        assert (answer.status_code, answer.headers["Location"]) == (302, f"/sign-in?next={PAGE}")
    assert not PublisherClaim.objects.exists()


@contextmanager
def github(user: Any, login: Any, age: timedelta = timedelta()) -> Iterator[None]:
    """Let ``user`` have signed in at GitHub; the sign-in itself is tested with a real provider elsewhere."""
    made = SocialAccount.objects.create(user=user, provider="github", uid="7", extra_data={"login": login})
    SocialAccount.objects.filter(pk=made.pk).update(last_login=timezone.now() - age)
    with override_settings(SOCIALACCOUNT_PROVIDERS={"github": {}}):
        yield


def test_a_sign_in_at_github_proves_the_publisher_of_that_name(env: WorkerEnv) -> None:
    user = account()
    client = signed_in(user)
    with github(user, "Acme"):
        assert "Claim github.com/acme" in client.get(PAGE).content.decode()
        assert client.post(PAGE, {"sign_in": "github.com/acme"}).status_code == 302

    done = owner_claim(env, "github.com/acme")
    assert done is not None
    assert (done.proof, done.account_name) == (Proof.SIGN_IN, "ada")


@pytest.mark.parametrize(
    ("login", "age", "asked"),
    [
        pytest.param("acme", timedelta(minutes=16), "github.com/acme", id="long ago"),
        pytest.param("mallory", timedelta(), "github.com/acme", id="as somebody else"),
        pytest.param("acme", timedelta(), "git.corp.example/acme", id="at another host"),
        pytest.param("acme/skills", timedelta(), "github.com/acme", id="a name that none can have"),
        pytest.param(None, timedelta(), "github.com/acme", id="without a name"),
    ],
)
def test_another_sign_in_proves_nothing(env: WorkerEnv, login: Any, age: timedelta, asked: str) -> None:
    user = account()
    with github(user, login, age):
        assert signed_in(user).post(PAGE, {"sign_in": asked}).status_code == 422
    assert not PublisherClaim.objects.exists()


def test_who_may_act_for_a_publisher(env: WorkerEnv) -> None:
    owner = account()
    grant(env, owner, "github.com/acme", "acme", actor="op", reason="known to us")

    assert may_act_for(owner, env, "github.com/acme")
    assert not may_act_for(owner, env, "github.com/other")
    assert not may_act_for(owner, env, "")
    # By its name alone nobody has what an account of that name uploaded before.
    assert not may_act_for(owner, env, "account/ada")
    assert not may_act_for(None, env, "github.com/acme")
    for role in Role:
        somebody = account(f"a-{role}", role)
        assert may_act_for(somebody, env, "github.com/acme") == (role in (Role.OPERATOR, Role.ADMIN))
    owner.is_active = False
    assert not may_act_for(owner, env, "github.com/acme")


def test_claims_belong_to_an_environment(env: WorkerEnv) -> None:
    owner = account()
    grant(env, owner, "github.com/acme", "acme", actor="op", reason="known to us")
    other = replace(env, name="other")

    assert not may_act_for(owner, other, "github.com/acme")
    claim = grant(other, account("grace"), "github.com/acme", "acme", actor="op", reason="there it is hers")
    assert owner_claim(other, "github.com/acme") == claim
    assert not end(env, claim, actor="op", reason="not of here")


def test_a_publisher_in_another_case_is_the_same_where_the_host_ignores_case(env: WorkerEnv) -> None:
    grant(env, account(), publisher_of("https://github.com/ACME/r").identity, "acme", actor="op", reason="x")
    with pytest.raises(ClaimRefused, match="is claimed by ada"):
        begin(env, account("mallory"), "https://github.com/Acme/other")
