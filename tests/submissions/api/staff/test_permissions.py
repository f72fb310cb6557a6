"""Every call of reviewers and operators, from the side of who lacks what it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client, override_settings
from django.utils import timezone

from marketplace.models import HistoryEvent
from marketplace.skills.blocklist import is_blocked
from submissions.states import State
from submissions.store.queries import history, read_submission
from tests.marketplace.factories import publish_example
from tests.submissions.api.staff.staff import CALLS, OPERATE, REVIEW, call, token_of
from tests.submissions.factories import make_submission
from vskill.access_tokens.models import AccessToken
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.token_form import new_token
from vskill.accounts.roles import Role
from vskill.environments import WorkerEnv, get_environment
from vskill.models import RoleGrant
from vskill.worker_context import run_with_worker_env

pytestmark = pytest.mark.django_db(transaction=True)

EVIL: Final = "https://github.com/evil/skills"
BELOW: Final = {Scope.REVIEW: Role.SUBMITTER, Scope.OPERATE: Role.REVIEWER}
ABOVE: Final = {Scope.REVIEW: Role.REVIEWER, Scope.OPERATE: Role.OPERATOR}


class Registry:
    """A held submission and a published skill, on which every call would do something."""

    def __init__(self, env: WorkerEnv) -> None:
        """Publish and hold."""
        self.env = env
        publish_example(env)
        self.held = make_submission(env, State.ON_HOLD, contentHash="c" * 64).id
        self.events = HistoryEvent.objects.count()

    def address(self, path: str) -> str:
        return path.replace("{submission_id}", self.held).replace("{slug}", "hello-skill")

    def body(self, method: str, path: str) -> dict[str, Any] | None:
        if method == "GET":
            return None
        if "blocks" in path:
            return {"kind": "repo", "value": EVIL, "reason": "why"}
        what = {"decision": "reject"} if path.endswith("/decision") else {"operation": "requeue"}
        if path.endswith("/undo"):
            what = {}
        if "{slug}" in path:
            what = {"operation": "quarantine"}
        return {**what, "reason": "why", "seen": 1}

    def ask(self, token: str | None, method: str, path: str, **headers: str) -> Any:
        return call(token, method, self.address(path), self.body(method, path), **headers)

    def is_untouched(self) -> bool:
        return (
            HistoryEvent.objects.count() == self.events
            and not history(self.env, self.held)
            and read_submission(self.env, self.held).version == 1
            and is_blocked(self.env, EVIL) is None
        )


@pytest.fixture(params=["open", "closed"])
def registry(request: pytest.FixtureRequest, env: WorkerEnv) -> Iterator[Registry]:
    options = {"hosts": ["testserver"], "policy": {"access": request.param}}
    with override_settings(VSKILL_ENVIRONMENTS={"default": options}):
        yield Registry(get_environment("default"))


def scope_of(path: str) -> Scope:
    return Scope.REVIEW if path.startswith(REVIEW) else Scope.OPERATE


def each(refused: Callable[[str, str], Any]) -> Iterator[tuple[str, Any]]:
    for method, path in CALLS:
        yield f"{method} {path}", refused(method, path)


def check(registry: Registry, ask: Callable[[str, str], Any], status: int, code: str) -> None:
    """Check that every call is refused so, in the one form of errors, and that nothing was done."""
    for name, answer in each(ask):
        assert (answer.status_code, answer.json()["error"]) == (status, code), (name, answer.content)
        assert set(answer.json()) == {"error", "message"}, name
        assert answer.headers["Cache-Control"] == "no-store", name
        assert ("WWW-Authenticate" in answer.headers) == (code != "forbidden"), name
    assert registry.is_untouched()


def test_there_are_calls_of_both_kinds() -> None:
    assert len(CALLS) == 12
    assert {path.split("/")[3] for _method, path in CALLS} == {"review", "operate"}


def test_who_sends_no_token_is_refused_also_with_a_session(registry: Registry) -> None:
    check(registry, lambda method, path: registry.ask(None, method, path), 401, "unauthorized")
    client = Client()
    client.force_login(get_user_model()._default_manager.create_superuser("root"))
    for method, path in CALLS:
        body = registry.body(method, path)
        sent: dict[str, Any] = {} if body is None else {"data": body, "content_type": "application/json"}
        assert getattr(client, method.lower())(registry.address(path), **sent).status_code == 401, path
    assert registry.is_untouched()


def test_a_token_for_something_else_is_refused_whatever_the_role(registry: Registry) -> None:
    for scope in Scope:
        others = [one for one in Scope if one not in (scope, Scope.READ)]
        token = token_of(registry.env, Role.ADMIN, *others, Scope.READ)
        for method, path in CALLS:
            if scope_of(path) is scope:
                answer = registry.ask(token, method, path)
                assert (answer.status_code, answer.json()["error"]) == (403, "insufficient_scope"), path
    assert registry.is_untouched()


def test_a_token_for_it_is_refused_without_the_role(registry: Registry) -> None:
    tokens = {scope: token_of(registry.env, role, *Scope) for scope, role in BELOW.items()}
    check(registry, lambda method, path: registry.ask(tokens[scope_of(path)], method, path), 403, "forbidden")
    nobody = token_of(registry.env, None, *Scope, name="nobody")
    check(registry, lambda method, path: registry.ask(nobody, method, path), 403, "forbidden")


def test_a_role_without_the_permission_of_the_admin_is_refused(registry: Registry) -> None:
    # Staff without a granted role: the permission to change skills counts as the role of an operator.
    user: Any = get_user_model()._default_manager.create_user("staff", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="change_skillentry"))
    token = token_of(registry.env, None, *Scope, name="staff")
    permitted = {
        (method, path) for method, path in CALLS if registry.ask(token, method, path).status_code in (200, 409)
    }
    assert permitted == {("GET", f"{OPERATE}/skills/{{slug}}"), ("POST", f"{OPERATE}/skills/{{slug}}")}


def test_what_has_ended_is_refused(registry: Registry) -> None:
    def refused() -> None:
        check(registry, lambda method, path: registry.ask(token, method, path), 401, "invalid_token")

    token = token_of(registry.env, Role.ADMIN, *Scope)
    AccessToken.objects.update(expires_at=timezone.now())
    refused()
    AccessToken.objects.update(expires_at=timezone.now() + timedelta(days=1), revoked_at=timezone.now())
    refused()
    AccessToken.objects.update(revoked_at=None)
    get_user_model()._default_manager.update(is_active=False)
    refused()
    token = new_token()
    refused()


def test_a_role_that_was_taken_away_counts_no_more(registry: Registry) -> None:
    token = token_of(registry.env, Role.ADMIN, *Scope)
    assert registry.ask(token, "GET", REVIEW).status_code == 200
    RoleGrant.objects.all().delete()
    check(registry, lambda method, path: registry.ask(token, method, path), 403, "forbidden")


def test_a_token_or_a_role_of_another_environment_counts_nothing() -> None:
    two = {"default": {"hosts": ["testserver"]}, "other": {"hosts": ["other.test"]}}
    with override_settings(VSKILL_ENVIRONMENTS=two, ALLOWED_HOSTS=["testserver", "other.test"]):
        home, other = get_environment("default"), get_environment("other")
        registry = run_with_worker_env(home, Registry, home)
        elsewhere = token_of(other, Role.ADMIN, *Scope)
        check(registry, lambda method, path: registry.ask(elsewhere, method, path), 401, "invalid_token")
        # The same account, with a token of this environment: its role is of the other one.
        here = token_of(home, None, *Scope, name="the-admin")
        check(registry, lambda method, path: registry.ask(here, method, path), 403, "forbidden")


def test_who_has_both_is_answered(registry: Registry) -> None:
    tokens = {scope: token_of(registry.env, role, scope) for scope, role in ABOVE.items()}
    for method, path in CALLS:
        if method == "GET":
            answer = registry.ask(tokens[scope_of(path)], method, path)
            assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store"), path
            assert registry.ask(tokens[scope_of(path)], "HEAD", path).status_code == 200, path
    # A token that reviews does not operate, and the other way round.
    assert {registry.ask(tokens[Scope.REVIEW], *one).status_code for one in CALLS if OPERATE in one[1]} == {403}
    assert {registry.ask(tokens[Scope.OPERATE], *one).status_code for one in CALLS if REVIEW in one[1]} == {403}
    assert registry.is_untouched()
    posts = [one for one in CALLS if one[0] == "POST"]
    # The skill was written more often than once, and the submission is decided about by the first call.
    answers = {path: registry.ask(tokens[scope_of(path)], method, path).status_code for method, path in posts}
    assert set(answers.values()) == {200, 409}
    assert answers[f"{REVIEW}/{{submission_id}}/decision"] == 200
