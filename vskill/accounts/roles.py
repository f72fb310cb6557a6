"""Roles: what somebody may do in one environment, by a grant or by the permissions of staff.

Everything else asks ``role_in`` and ``may``; nothing compares names of roles.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from django.apps import apps

from vskill.accounts.limits import limit_of
from vskill.db import ROUTED_APPS
from vskill.environments import WorkerEnv
from vskill.models import RoleGrant


class Role(StrEnum):
    """What somebody is in an environment; each role may do what those before it may."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    REVIEWER = "reviewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class Action(StrEnum):
    """What a role permits: read pages and files, submit, decide about submissions, operate, and grant roles."""

    READ = "read"
    SUBMIT = "submit"
    REVIEW = "review"
    OPERATE = "operate"
    ADMINISTER = "administer"


_RANK: Final = {role: rank for rank, role in enumerate(Role)}
# The least role for each action.
_LEAST: Final = dict(zip(Action, Role, strict=True))
_GRANTING: Final = frozenset(
    f"vskill.{verb}_{model}" for model in ("rolegrant", "team") for verb in ("add", "change", "delete", "view")
)
# Permissions of staff which no role was granted to, and the role that they come to.
_OF_STAFF: Final = (
    (Role.OPERATOR, "marketplace.change_skillentry"),
    (Role.REVIEWER, "submissions.change_submissionentry"),
)


def role_in(user: Any, env: WorkerEnv) -> Role | None:
    """Return the role of ``user`` in an environment, or ``None`` where there is none: of strangers and of the inactive.

    Superusers are admins everywhere. A limit to other environments comes before every grant. Staff without a grant
    have the role that their permissions come to, others the environment's ``policy.sign_in_role``.
    """
    if user is None or not user.is_authenticated or not user.is_active:
        return None
    if user.is_superuser:
        return Role.ADMIN
    if (limit := limit_of(user)) is not None and env.name not in limit:
        return None
    if (granted := granted_role(user, env)) is not None:
        return granted
    if user.is_staff:
        held = (role for role, permission in _OF_STAFF if user.has_perm(permission))
        return next(held, Role.VIEWER)
    return Role(env.policy.sign_in_role) if env.policy.sign_in_role else None


def may(user: Any, env: WorkerEnv, action: Action) -> bool:
    """Return whether the role of ``user`` in an environment permits ``action``; a stranger has none and may nothing."""
    role = role_in(user, env)
    return role is not None and _RANK[role] >= _RANK[_LEAST[action]]


def granted_role(user: Any, env: WorkerEnv) -> Role | None:
    """Return the role that was granted to ``user``; it is read once for each user object."""
    known: dict[str, Role | None] = user.__dict__.setdefault("_granted_roles", {})
    if env.name not in known:
        found = RoleGrant.objects.filter(user_id=user.pk, environment=env.name).values_list("role", flat=True).first()
        known[env.name] = Role(found) if found in set(Role) else None
    return known[env.name]


@lru_cache(maxsize=len(Role))
def permissions_of(role: Role) -> frozenset[str]:
    """Return Django's permissions that come with a role: reviewers decide, operators do all, admins grant roles too.

    An app names what its reviewers may change in ``reviewer_permissions`` of its configuration.
    """
    if _RANK[role] < _RANK[Role.REVIEWER]:
        return frozenset()
    every = {
        f"{config.label}.{verb}_{model._meta.model_name}"
        for config in apps.get_app_configs()
        if config.label in ROUTED_APPS
        for model in config.get_models()
        for verb in model._meta.default_permissions
    }
    if role is Role.REVIEWER:
        decide = {one for config in apps.get_app_configs() for one in getattr(config, "reviewer_permissions", ())}
        return frozenset(one for one in every if ".view_" in one) | decide
    return frozenset(every) | (_GRANTING if role is Role.ADMIN else frozenset())
