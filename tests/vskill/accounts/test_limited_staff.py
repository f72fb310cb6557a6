"""Operators of one environment and sessions of one host, against every staff route from the side of who lacks it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import aauthenticate, get_user_model
from django.contrib.auth.models import Group, Permission
from django.contrib.sessions.models import Session
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import reverse

from marketplace.models import SkillEntry
from marketplace.skills.blocklist import BlockKind, add_block
from submissions.models import SubmissionEntry
from submissions.states import State
from tests.marketplace.factories import publish_example
from tests.routes import PLACE, every_route
from tests.submissions.factories import make_submission
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.models import KVEntry
from vskill.models import StaffLimit
from vskill.worker_context import run_with_worker_env

pytestmark = pytest.mark.django_db(transaction=True)

TWO: Final = {"default": {"hosts": ["one.test"]}, "other": {"hosts": ["two.test", "three.test"]}}
STAFF: Final = [route for route in every_route() if route.startswith("/admin/")]
LOGIN: Final = "/admin/login/"
PASSWORD: Final = "long enough to pass"


@pytest.fixture
def other() -> Iterator[WorkerEnv]:
    """Return the second of two environments of one database, both filled with a row of each kind."""
    with override_settings(VSKILL_ENVIRONMENTS=TWO, ALLOWED_HOSTS=["one.test", "two.test", "three.test"]):
        for name in TWO:
            env = get_environment(name)
            run_with_worker_env(env, publish_example, env)
            make_submission(env, State.ON_HOLD, message=True)
            add_block(env, BlockKind.OWNER, "example.org/evil", actor="test", reason="evil")
        yield get_environment("other")


def operator(*environments: str, name: str = "ada", limited: bool = True) -> Any:
    """Make an operator with every permission, limited to ``environments``."""
    user: Any = get_user_model()._default_manager.create_user(name, password=PASSWORD, is_staff=True)
    user.user_permissions.set(Permission.objects.all())
    if limited:
        StaffLimit.objects.create(user=user, environments=list(environments))
    return user


def logged_in(user: Any, env: WorkerEnv) -> Client:
    """Return a client with a session of this environment, however it came by it."""
    client = Client(SERVER_NAME=env.hosts[0])
    run_with_worker_env(env, client.force_login, user)
    return client


def elsewhere(client: Client, host: str) -> Client:
    """Return a client that sends the cookies of another to another host."""
    copy = Client(SERVER_NAME=host)
    copy.cookies["sessionid"] = client.cookies["sessionid"].value
    return copy


def is_nobody(client: Client, path: str) -> None:
    """Check that a staff route shows and does nothing for this client: it leads to the login."""
    for method in (client.get, client.post):
        answer: Any = method(path, {"reason": "why", "ids": "1", "action": "x"})
        if path == LOGIN:
            # The form, also where somebody is known who is no staff here.
            assert b"ada" not in answer.content
            assert answer.status_code == 200
        else:
            wanted = (reverse("admin:index"),) if "logout" in path else (LOGIN, f"{LOGIN}?")
            assert answer.status_code == 302, (path, answer.status_code)
            assert answer.headers["Location"].split("?")[0] in wanted, (path, answer.headers["Location"])


def filled_in(route: str) -> str:
    if route == f"/admin/{PLACE}/":
        return "/admin/submissions/"
    return route.replace(PLACE, "requeue" if "operate" in route else "1")


def test_no_staff_route_knows_who_is_limited_to_another_environment(other: WorkerEnv) -> None:
    # The session itself is of this host: begun before the limit was set.
    user = operator(limited=False)
    client = logged_in(user, other)
    assert client.get("/admin/").status_code == 200
    StaffLimit.objects.create(user=user, environments=["default"])
    for route in STAFF:
        is_nobody(client, filled_in(route))


def test_no_staff_route_knows_the_session_of_another_host(other: WorkerEnv) -> None:
    admin = get_user_model()._default_manager.create_superuser("ada")
    at_home = logged_in(admin, get_environment("default"))
    for route in STAFF:
        is_nobody(elsewhere(at_home, "two.test"), filled_in(route))
    assert at_home.get("/admin/").status_code == 200


def test_who_is_limited_does_not_reach_the_accounts_of_all(other: WorkerEnv) -> None:
    user = operator("other")
    client = logged_in(user, other)
    group = Group.objects.create(name="reviewers")
    user.groups.add(group)
    group.permissions.set(Permission.objects.all())
    for route in STAFF:
        if route.startswith("/admin/auth/") and route.count("/") > 3:
            path = route.replace(PLACE, str(group.pk if "/group/" in route else user.pk))
            # What is no page itself is an old address of one and leads there.
            statuses = [ask(path, follow=True).status_code for ask in (client.get, client.post)]
            assert statuses == [403, 403], path
    assert client.get("/admin/auth/").status_code == 404


def test_who_is_limited_works_at_home_with_the_permissions_given(other: WorkerEnv) -> None:
    user = operator("other")
    client = logged_in(user, other)
    index = client.get("/admin/").content.decode()
    assert "/admin/submissions/submissionentry/" in index
    assert "/admin/auth/" not in index
    assert user.has_perm("marketplace.change_skillentry")
    assert not user.has_perm("auth.change_user")
    assert not user.has_perm("vskill.delete_stafflimit")
    user.user_permissions.clear()
    assert logged_in(user, other).get("/admin/submissions/submissionentry/").status_code == 403


def test_a_session_of_one_host_is_valid_on_the_other_hosts_of_its_environment_only(other: WorkerEnv) -> None:
    admin = get_user_model()._default_manager.create_superuser("ada")
    client = logged_in(admin, other)
    assert elsewhere(client, "three.test").get("/admin/").status_code == 200
    assert elsewhere(client, "one.test").get("/admin/").status_code == 302


@pytest.mark.parametrize("what", ["login", "logout", "password"])
def test_nothing_on_another_host_ends_or_changes_a_session(other: WorkerEnv, what: str) -> None:
    admin = get_user_model()._default_manager.create_superuser("ada", password=PASSWORD)
    at_home = logged_in(admin, get_environment("default"))
    kept = Session.objects.get().session_data
    away = elsewhere(at_home, "two.test")
    if what == "login":
        assert login(away, PASSWORD).status_code == 302
        assert away.get("/admin/").status_code == 200
        assert Session.objects.count() == 2
    elif what == "logout":
        away.post("/admin/logout/")
    else:
        login(away, "not the password")
    assert Session.objects.get(session_key=at_home.cookies["sessionid"].value).session_data == kept
    assert at_home.get("/admin/").status_code == 200


def login(client: Client, password: str) -> HttpResponse:
    answer: Any = client.post(LOGIN, {"username": "ada", "password": password, "next": "/admin/"})
    return answer  # type: ignore[no-any-return]


def test_the_login_of_another_environment_answers_like_a_wrong_password(other: WorkerEnv) -> None:
    operator("default")
    away, home = Client(SERVER_NAME="two.test"), Client(SERVER_NAME="one.test")
    words = "Please enter the correct username and password"
    refused = login(away, PASSWORD)
    assert (refused.status_code, words in refused.content.decode()) == (200, True)
    assert login(home, PASSWORD).status_code == 302
    for env, known in ((other, False), (get_environment("default"), True)):
        found = async_to_sync(authenticated)(env)
        assert (found is not None) is known


async def authenticated(env: WorkerEnv) -> Any:
    return await run_with_worker_env(env, aauthenticate, username="ada", password=PASSWORD)


def test_the_details_of_healthz_are_for_the_staff_of_the_environment(other: WorkerEnv) -> None:
    def details_shown(client: Client) -> bool:
        return b"processes" in client.get("/healthz", REMOTE_ADDR="203.0.113.9").content

    user = operator("other")
    at_home, away = logged_in(user, other), logged_in(user, get_environment("default"))
    assert [details_shown(client) for client in (at_home, away, elsewhere(at_home, "one.test"))] == [True, False, False]


@pytest.mark.parametrize(
    ("environments", "superuser", "allowed"),
    [
        (None, False, {"default", "other"}),
        (["other"], False, {"other"}),
        (["default", "other"], False, {"default", "other"}),
        (["of the past"], False, set()),
        ([], False, set()),
        (["other"], True, {"default", "other"}),
    ],
)
def test_where_somebody_may_work(
    other: WorkerEnv, environments: list[str] | None, superuser: bool, allowed: set[str]
) -> None:
    user = operator(*(environments or ()), limited=environments is not None)
    user.is_superuser = superuser
    user.save()
    for name in TWO:
        env = get_environment(name)
        status = logged_in(user, env).get("/admin/").status_code
        assert status == (200 if name in allowed else 302), name


@pytest.mark.parametrize("model", [SkillEntry, SubmissionEntry, KVEntry])
def test_the_rows_of_another_environment_are_neither_listed_shown_searched_nor_operated_on(
    other: WorkerEnv, model: Any
) -> None:
    client = logged_in(operator("other"), other)
    of_there = model.objects.filter(namespace="default").first()
    of_here = model.objects.filter(namespace="other").first()
    base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
    listed = client.get(base).content.decode()
    assert f"{base}{of_here.pk}/change/" in listed
    assert f"{base}{of_there.pk}/change/" not in listed
    assert f"{of_there.pk}/change/" not in client.get(f"{base}?q={of_there.key}").content.decode()
    for page in ("change", "history"):
        assert client.get(f"{base}{of_there.pk}/{page}/").status_code == 302
        assert client.get(f"{base}{of_here.pk}/{page}/").status_code == 200
    for operation in ("requeue", "reject", "approve", "quarantine"):
        client.post(f"{base}operate/{operation}/", {"ids": str(of_there.pk), "reason": "why"})
    assert model.objects.get(pk=of_there.pk).version == of_there.version


def test_an_admin_sets_changes_and_lifts_the_limit_on_the_page_of_a_user(other: WorkerEnv) -> None:
    root = get_user_model()._default_manager.create_superuser("root")
    user = operator("of the past")
    client = logged_in(root, other)
    address = f"/admin/auth/user/{user.pk}/change/"
    page = client.get(address)
    assert "of the past" in page.content.decode()
    form: Any = page.context["adminform"].form
    sent = {name: form[name].value() or "" for name in ("username", "first_name", "last_name", "email")}
    sent |= {"is_active": "on", "is_staff": "on", "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    limit = StaffLimit.objects.get()
    sent |= {f"environment_limit-{name}_FORMS": 1 for name in ("TOTAL", "INITIAL")}
    sent |= {"environment_limit-0-id": limit.pk, "environment_limit-0-user": user.pk}
    assert client.post(address, {**sent, "environment_limit-0-environments": ["default"]}).status_code == 302
    assert StaffLimit.objects.get().environments == ["default"]
    assert str(StaffLimit.objects.get()) == "only default"
    assert client.post(address, {**sent, "environment_limit-0-DELETE": "on"}).status_code == 302
    assert not StaffLimit.objects.exists()
