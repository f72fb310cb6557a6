"""Roles in two environments: what each permits, who has one without a grant, and the admin for who lacks it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser, Permission
from django.test import Client, override_settings
from django.utils import timezone

from tests.vskill.accounts.test_limited_staff import PASSWORD, TWO, logged_in
from vskill.accounts.roles import Action, Role, may, permissions_of, role_in
from vskill.environments import WorkerEnv, get_environment
from vskill.models import RoleGrant, StaffLimit
from vskill.worker_context import run_with_worker_env

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def other() -> Iterator[WorkerEnv]:
    """Return the second of two environments of one database."""
    with override_settings(VSKILL_ENVIRONMENTS=TWO, ALLOWED_HOSTS=["one.test", "two.test"]):
        yield get_environment("other")


def member(role: str = "", environment: str = "other", name: str = "ada", **options: Any) -> Any:
    """Make an account with a role in one environment, and none elsewhere."""
    user: Any = get_user_model()._default_manager.create_user(name, password=PASSWORD, **options)
    if role:
        RoleGrant.objects.create(
            user=user, environment=environment, role=role, granted_by="root", granted_at=timezone.now()
        )
    return get_user_model()._default_manager.get(pk=user.pk)


def test_each_role_permits_what_those_before_it_permit_and_in_its_own_environment_only(other: WorkerEnv) -> None:
    actions = list(Action)
    for number, role in enumerate(Role):
        user = member(role, name=role)
        assert [may(user, other, action) for action in actions] == [at <= number for at in range(len(actions))]
        assert not any(may(user, get_environment("default"), action) for action in actions)


def test_a_stranger_the_inactive_and_the_limited_have_no_role_and_superusers_are_admins(other: WorkerEnv) -> None:
    assert role_in(None, other) is None
    assert role_in(AnonymousUser(), other) is None
    assert role_in(member(), other) is None
    assert role_in(member("admin", name="gone", is_active=False), other) is None
    limited = member("admin", name="limited")
    StaffLimit.objects.create(user=limited, environments=["default"])
    assert role_in(limited, other) is None
    assert not run_with_worker_env(other, limited.has_perm, "vskill.add_rolegrant")
    assert role_in(get_user_model()._default_manager.create_superuser("root"), other) is Role.ADMIN


@pytest.mark.parametrize(
    ("permissions", "role"),
    [
        ((), Role.VIEWER),
        (("change_submissionentry",), Role.REVIEWER),
        (("change_submissionentry", "change_skillentry"), Role.OPERATOR),
    ],
)
def test_staff_without_a_grant_have_the_role_that_their_permissions_come_to(
    other: WorkerEnv, permissions: tuple[str, ...], role: Role
) -> None:
    user = member(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    assert role_in(user, other) is role


def test_a_role_brings_its_permissions_in_its_own_environment_only(other: WorkerEnv) -> None:
    asked = {
        *("submissions.view_submissionentry", "submissions.change_submissionentry"),
        *("marketplace.change_skillentry", "vskill.add_rolegrant", "auth.change_user"),
    }
    held = {role: run_with_worker_env(other, member(role, name=role).get_all_permissions) & asked for role in Role}
    reviewer = {"submissions.view_submissionentry", "submissions.change_submissionentry"}
    operator = reviewer | {"marketplace.change_skillentry"}
    assert held == {
        Role.VIEWER: set(),
        Role.SUBMITTER: set(),
        Role.REVIEWER: reviewer,
        Role.OPERATOR: operator,
        Role.ADMIN: operator | {"vskill.add_rolegrant"},
    }
    assert not run_with_worker_env(get_environment("default"), member(Role.ADMIN).get_all_permissions)
    # Each permission that is named is one of Django's.
    known = {f"{one.content_type.app_label}.{one.codename}" for one in Permission.objects.select_related()}
    assert permissions_of(Role.ADMIN) | permissions_of(Role.REVIEWER) <= known


def test_the_admin_is_open_to_reviewers_and_above_in_their_own_environment_only(other: WorkerEnv) -> None:
    for role in Role:
        user = member(role, name=role)
        for env in (other, get_environment("default")):
            open_here = env is other and role in (Role.REVIEWER, Role.OPERATOR, Role.ADMIN)
            client = Client(SERVER_NAME=env.hosts[0])
            answer = client.post("/admin/login/", {"username": role, "password": PASSWORD, "next": "/admin/"})
            assert answer.status_code == (302 if open_here else 200), (role, env.name)
            of_session = logged_in(user, env)
            assert of_session.get("/admin/").status_code == (200 if open_here else 302), (role, env.name)
            assert of_session.get("/admin/vskill/rolegrant/").status_code == (
                200 if open_here and role is Role.ADMIN else 403 if open_here else 302
            ), (role, env.name)
            assert of_session.get("/admin/auth/user/").status_code == (403 if open_here else 302)


def test_an_admin_grants_changes_and_takes_away_roles_here_and_sees_none_elsewhere(other: WorkerEnv) -> None:
    grace = member(name="grace")
    elsewhere = RoleGrant.objects.create(
        user=grace, environment="default", role="viewer", granted_by="root", granted_at=timezone.now()
    )
    client = logged_in(member("admin"), other)
    base = "/admin/vskill/rolegrant/"
    assert "no such account" in client.post(f"{base}add/", {"username": "nobody", "role": "viewer"}).content.decode()
    assert client.post(f"{base}add/", {"username": "grace", "role": "operator"}).status_code == 302
    granted = RoleGrant.objects.get(user=grace, environment="other")
    assert (granted.role, granted.granted_by) == ("operator", "ada")
    again = client.post(f"{base}add/", {"username": "grace", "role": "viewer"}).content.decode()
    assert "has a role here" in again
    changed = client.post(f"{base}{granted.pk}/change/", {"role": "reviewer", "username": "ada"})
    assert changed.status_code == 302
    assert RoleGrant.objects.get(pk=granted.pk).role == "reviewer"
    assert RoleGrant.objects.get(pk=granted.pk).user == grace
    assert f"{base}{elsewhere.pk}/" not in client.get(base).content.decode()
    client.post(f"{base}{elsewhere.pk}/delete/", {"post": "yes"})
    client.post(f"{base}{granted.pk}/delete/", {"post": "yes"})
    assert list(RoleGrant.objects.filter(user=grace)) == [elsewhere]
