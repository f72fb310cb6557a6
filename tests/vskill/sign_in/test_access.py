"""Who may send a request, on every route of the URL configuration, from the side of who may not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final

import pytest
from django.contrib.auth import get_user_model
from django.test import AsyncClient, Client, override_settings
from django.utils import timezone

from tests.marketplace.factories import publish_example
from tests.routes import PLACE, every_route
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import make_token
from vskill.accounts.access import with_pass
from vskill.configuration import VARIABLES
from vskill.environments import WorkerEnv, build_environment, get_environment
from vskill.models import RoleGrant
from vskill.source_variables import with_common_options
from vskill.variables import read_variables

pytestmark = pytest.mark.django_db(transaction=True)

PASSWORD: Final = "long enough to pass"
# Everything that answers a stranger of a closed registry: it leads to the sign-in, tells no more than that the server
# is alive, checks the signature of a scanner or a git host, lets a program wait for whoever lets it in, asks for a
# session itself, or knows an account by the link of a mail or the secret address of a feed.
FOR_STRANGERS: Final = {
    *("/account/notifications/confirm/{}", "/account/notifications/end/{}", "/feeds/notifications/{}.atom"),
    "/api/v1/webhooks/{}",
    *("/api/cli/device/code", "/api/cli/device/token"),
    *("/sign-in/github", "/sign-in/github/callback", "/sign-in/oidc/{}", "/sign-in/oidc/{}/callback"),
    *("/account/password", "/sign-in/forgotten", "/sign-in/new-password/{}/{}"),
    *("/sign-in", "/sign-out", "/account", "/admin/login/", "/healthz", "/robots.txt", "/api/v1/external-scans/{}"),
}
# They are posted to and change nothing; the first two ask for a session themselves.
READ_BY_POST: Final = {
    "/mcp",
    "/device",
    "/account/tokens",
    "/account/notifications",
    "/api/v1/skills/check-updates",
    "/api/v1/skills/installs",
    "/api/v1/skills/{}/installs",
    "/api/v1/skills/@{}/{}/installs",
    "/api/v1/skills/{}/{}/{}/installs",
    *(f"/git/{name}{end}/git-upload-pack" for name in ("-/{}", "{}/{}", "{}") for end in (".git", "")),
}
# Its own login follows, and its own permissions.
ADMIN: Final = "/admin/"
BROWSER: Final[dict[str, Any]] = {"HTTP_ACCEPT": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}
WORDS: Final = b"hello-skill"

Registry = Callable[..., WorkerEnv]


@pytest.fixture
def registry(env: WorkerEnv) -> Iterator[Registry]:
    """Return a function that makes a registry with one skill, with the access that it is given."""
    entered: list[AbstractContextManager[Any]] = []

    def make(access: str, **policy: str) -> WorkerEnv:
        options = {"hosts": ["testserver"], "policy": {"access": access, **policy}}
        changed = override_settings(VSKILL_ENVIRONMENTS={"default": options})
        changed.__enter__()
        entered.append(changed)
        found = get_environment("default")
        publish_example(found)
        return found

    yield make
    for one in reversed(entered):
        one.__exit__(None, None, None)


def path_of(route: str) -> str:
    return route.replace(PLACE, "hello-skill")


def signed_in(role: str = "", name: str = "ada") -> Client:
    """Return a client of an account with a role, or with none."""
    user: Any = get_user_model()._default_manager.create_user(name, password=PASSWORD)
    if role:
        RoleGrant.objects.create(
            user=user, environment="default", role=role, granted_by="root", granted_at=timezone.now()
        )
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def refused(answer: Any, status: int = 401) -> bool:
    """Return whether a program was refused, in a form that it can print."""
    kind = answer.headers["Content-Type"]
    forms = ("text/plain", "application/json", "application/problem+json")
    return answer.status_code == status and kind.startswith(forms) and bool(answer.content)


def led_to_sign_in(answer: Any) -> bool:
    return answer.status_code in (302, 303) and answer.headers["Location"].startswith("/sign-in?next=")


def test_a_closed_registry_answers_strangers_on_the_routes_of_a_short_list_only(registry: Registry) -> None:
    registry("closed")
    client = Client(raise_request_exception=False)
    answering = set()
    for route in every_route():
        path = path_of(route)
        asked: list[Any] = [client.get(path), client.head(path), client.post(path), client.put(path)]
        shown: list[Any] = [client.get(path, **BROWSER), client.post(path, **BROWSER)]
        assert all(WORDS not in getattr(one, "content", b"") for one in asked + shown), route
        told = [answer.status_code == 401 for answer in asked]
        ok = [led_to_sign_in(one) or refused(one) for one in shown]
        if all(told) and all(ok):
            assert refused(asked[0]), route
            assert asked[0].headers["WWW-Authenticate"].startswith("Bearer"), route
        else:
            assert not any(told), route
            answering.add(route)
    assert answering == FOR_STRANGERS
    # Nor does it say what is there and what is not.
    for path in ("/nothing", "/api/nothing", "/skills/nothing", "/skills/hello-skill/download/latest.zip"):
        assert refused(client.get(path)), path
    assert client.get("/robots.txt").content == b"User-agent: *\nDisallow: /\n"


def test_a_registry_that_strangers_only_read_refuses_them_each_writing_route(registry: Registry) -> None:
    registry("read-only")
    client = Client(raise_request_exception=False)
    writing = set()
    for route in every_route():
        for method in ("post", "put", "delete", "patch"):
            answer = getattr(client, method)(path_of(route))
            if answer.status_code == 401:
                assert refused(answer), route
                writing.add(route)
                assert (
                    led_to_sign_in(client.post(path_of(route), **BROWSER))
                    or route.startswith("/api/")
                    or refused(client.post(path_of(route), **BROWSER))
                )
    of_admin = {route for route in every_route() if route.startswith(ADMIN)}
    assert set(every_route()) - writing - of_admin == (FOR_STRANGERS - of_admin) | READ_BY_POST
    for path in ("/", "/skills/hello-skill", "/api/v1/skills", "/skills/hello-skill/download/latest.zip"):
        assert client.get(path).status_code == 200, path


def test_each_dialect_reads_the_refusal_in_its_own_form(registry: Registry) -> None:
    registry("closed")
    client = Client()
    for path, kind in {
        "/api/v1/submissions": "application/json",
        "/api/v1/skills": "text/plain",
        "/api/v1/download?slug=hello-skill": "text/plain",
        "/.well-known/agent-skills/index.json": "text/plain",
        "/skills/hello-skill/badge.svg": "text/plain",
        "/feeds/new.atom": "text/plain",
    }.items():
        answer: Any = client.get(path)
        assert (answer.status_code, answer.headers["Content-Type"].split(";")[0]) == (401, kind), path
        assert "sign in, or send a token" in answer.content.decode()
        assert answer.headers["Cache-Control"] == "no-store"
    assert client.get("/skills?q=a", **BROWSER).headers["Location"] == "/sign-in?next=%2Fskills%3Fq%3Da"
    sent = client.post("/skills/a/report", HTTP_REFERER="http://testserver/skills/a/report?x", **BROWSER)
    assert (sent.status_code, sent.headers["Location"]) == (303, "/sign-in?next=%2Fskills%2Fa%2Freport")
    foreign = client.post("/submit", HTTP_REFERER="http://evil.test/submit", **BROWSER)
    assert foreign.headers["Location"] == "/sign-in?next=%2F"


def test_who_has_no_role_reads_nothing_and_a_viewer_changes_nothing_on_any_route(registry: Registry) -> None:
    registry("closed")
    nobody, viewer = signed_in(name="nobody"), signed_in("viewer", name="viewer")
    for route in every_route():
        path = path_of(route)
        if route in FOR_STRANGERS or route.startswith(ADMIN):
            # Where the admin is, its own login follows for whoever has no role that works there.
            for client in (nobody, viewer):
                assert WORDS not in client.get(path).content, route
            continue
        assert refused(nobody.get(path), 403), route
        assert nobody.get(path, **BROWSER).status_code == 403, route
        assert route in READ_BY_POST or refused(viewer.post(path), 403), route
    assert b"has no role" in nobody.get("/", **BROWSER).content
    for path in ("/", "/skills/hello-skill", "/api/v1/skills", "/feeds/new.atom", "/skills/hello-skill/badge.svg"):
        assert viewer.get(path).status_code == 200, path
    assert nobody.get("/account").status_code == 200


def test_a_submitter_submits_but_not_for_a_page_of_another_origin(registry: Registry) -> None:
    send: dict[str, Any] = {"data": '{"repoUrl": "no address"}', "content_type": "application/json"}
    for access in ("closed", "read-only"):
        registry(access)
        client = signed_in("submitter", name=access)
        assert client.post("/api/v1/submissions", **send).status_code == 400
        assert client.post("/api/v1/submissions", HTTP_ORIGIN="http://evil.test", **send).status_code == 401
        assert client.post("/api/v1/submissions", HTTP_ORIGIN="http://testserver", **send).status_code == 400
    registry("open")
    assert Client().post("/api/v1/submissions", **send).status_code == 400


def test_everybody_who_signs_in_has_the_role_that_the_environment_gives(registry: Registry) -> None:
    registry("closed", sign_in_role="viewer")
    client = signed_in()
    assert client.get("/skills/hello-skill").status_code == 200
    assert client.post("/submit").status_code == 403
    get_user_model()._default_manager.update(is_active=False)
    assert client.get("/skills/hello-skill").status_code == 401


def test_a_token_opens_what_it_was_made_for_as_far_as_the_role_of_its_owner_goes(registry: Registry) -> None:
    env = registry("closed")
    people: Any = get_user_model()._default_manager
    signed_in("submitter"), signed_in(name="nobody")
    made = [("ada", Scope.READ), ("ada", Scope.SUBMIT), ("nobody", Scope.READ)]
    tokens = [make_token(env, people.get(username=name), name="x", scopes=[scope])[1] for name, scope in made]
    send: dict[str, Any] = {"data": '{"repoUrl": "no address"}', "content_type": "application/json"}
    answers = []
    for token in tokens:
        bearer = {"Authorization": f"Bearer {token}"}
        read = Client().get("/skills/hello-skill/download/latest.zip", headers=bearer)
        answers.append((read.status_code, Client().post("/api/v1/submissions", headers=bearer, **send).status_code))
    assert answers == [(200, 403), (403, 400), (403, 403)]


def test_no_cache_keeps_what_a_closed_registry_answers_and_a_pass_opens_one_archive(registry: Registry) -> None:
    env = registry("closed")
    archive = "/skills/hello-skill/download/0.0.1.zip"
    viewer, stranger = signed_in("viewer"), Client()
    for path in (archive, "/.well-known/agent-skills/index.json", "/.well-known/clawhub.json", "/", "/api/v1/skills"):
        answer: Any = viewer.get(path)
        kept = answer.headers["Cache-Control"]
        assert "public" not in kept, path
        assert "private" in kept or "no-store" in kept, path
        assert {"cookie", "authorization"} <= {one.strip().lower() for one in answer.headers["Vary"].split(",")}
    given = with_pass(env, archive)
    query = given.partition("?")[2]
    assert stranger.get(given).status_code == 200
    assert stranger.post(given).status_code == 401
    assert stranger.get(f"{given}x").status_code == 401
    assert stranger.get(f"/skills/hello-skill/download/latest.zip?{query}").status_code == 401
    assert stranger.get(archive).status_code == 401
    assert with_pass(registry("open"), archive) == archive


def test_the_variables_are_about_every_environment_that_does_not_say_otherwise() -> None:
    given = {"VSKILL_ACCESS": "closed", "VSKILL_SIGN_IN_ROLE": "viewer"}
    values = {name: setting.value for name, setting in read_variables(VARIABLES, given, {}).items()}
    declared = {**values["VSKILL_ENVIRONMENTS"], "added": {}, "own": {"policy": {"access": "open"}}}
    read = {
        name: build_environment(name, options, given).policy
        for name, options in with_common_options(declared, values).items()
    }
    assert {name: policy.access for name, policy in read.items()} == {
        "default": "closed",
        "added": "closed",
        "own": "open",
    }
    assert {policy.sign_in_role for policy in read.values()} == {"viewer"}


def test_the_asynchronous_server_keeps_the_rule_and_knows_who_is_signed_in(registry: Registry) -> None:
    registry("closed")
    cookie = signed_in("viewer").cookies["sessionid"].value

    async def answers() -> list[Any]:
        stranger, viewer = AsyncClient(), AsyncClient()
        viewer.cookies["sessionid"] = cookie
        return [await one.get("/skills/hello-skill") for one in (stranger, viewer)]

    refusal, page = asyncio.run(answers())
    assert refused(refusal)
    assert (page.status_code, b"ada" in page.content) == (200, True)


def test_pages_lead_to_the_sign_in_where_it_opens_something_and_the_form_signs_in_and_out(registry: Registry) -> None:
    registry("open")
    assert b"/sign-in" not in Client().get("/").content
    registry("read-only")
    signed_in("viewer")
    client = Client()
    assert b"/sign-in" in client.get("/").content
    sent = {"username": "ada", "password": "wrong", "next": "/account"}
    wrong = client.post("/sign-in", sent)
    assert (wrong.status_code, b"You are not signed in" in wrong.content) == (200, True)
    assert client.get("/account").status_code == 302
    away = Client().post("/sign-in", {**sent, "password": PASSWORD, "next": "https://evil.test/"})
    assert away.headers["Location"] == "/"
    assert client.post("/sign-in", {**sent, "password": PASSWORD}).headers["Location"] == "/account"
    assert b"<b>viewer</b>" in client.get("/account").content
    home = client.get("/").content
    assert (b"ada" in home, b"/sign-in" in home) == (True, False)
    assert client.get("/sign-in").headers["Location"] == "/account"
    client.post("/sign-out")
    assert b"/sign-in" in client.get("/").content
