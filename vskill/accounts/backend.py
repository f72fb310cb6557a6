"""Who is somebody in which environment; this module has the authentication backend."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.backends import ModelBackend
from django.http import HttpRequest

from vskill.accounts.limits import limit_of
from vskill.accounts.roles import granted_role, permissions_of
from vskill.db import ROUTED_APPS
from vskill.worker_context import get_worker_env


class EnvironmentBackend(ModelBackend):
    """Know a user with a limit in the user's own environments only; everywhere else there is no such user.

    That holds for the login and for each request, so no page needs a check of its own. In their own environments,
    users with a limit have the permissions given to them, except those on what all environments share: the accounts,
    with which they could lift the limit. A role that was granted brings its permissions in its own environment, also
    the one to grant roles there.
    """

    def user_can_authenticate(self, user: Any) -> bool:
        """Return whether the user is active and may work in the current environment; outside any, all may."""
        if user is None or not super().user_can_authenticate(user):
            return False
        env, limit = get_worker_env(), limit_of(user)
        return env is None or limit is None or env.name in limit

    def get_user_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        """Return the permissions that the user was given."""
        return _within_limit(user_obj, super().get_user_permissions(user_obj, obj))

    def get_group_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        """Return the permissions of the user's groups, and of the role that the user was granted here."""
        return _within_limit(user_obj, super().get_group_permissions(user_obj, obj)) | _of_role(user_obj, obj)

    # Django's asynchronous methods would ask the database for the limit on the event loop.

    async def aauthenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> Any:
        """Return the user with this name and password, or ``None``; see ``user_can_authenticate``."""
        return await sync_to_async(self.authenticate)(request, username, password, **kwargs)

    async def aget_user(self, user_id: Any) -> Any:
        """Return the user of a session, or ``None``; see ``user_can_authenticate``."""
        return await sync_to_async(self.get_user)(user_id)

    async def aget_user_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        """Return the permissions that the user was given."""
        return await sync_to_async(self.get_user_permissions)(user_obj, obj)

    async def aget_group_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        """Return the permissions of the user's groups."""
        return await sync_to_async(self.get_group_permissions)(user_obj, obj)


def _within_limit(user: Any, permissions: set[str]) -> set[str]:
    if not permissions or limit_of(user) is None:
        return permissions
    return {one for one in permissions if one.partition(".")[0] in ROUTED_APPS}


def _of_role(user: Any, obj: Any) -> frozenset[str]:
    env = get_worker_env()
    if env is None or obj is not None or not user.is_active or user.is_anonymous:
        return frozenset()
    role = granted_role(user, env)
    limit = limit_of(user)
    if role is None or (limit is not None and env.name not in limit):
        return frozenset()
    return permissions_of(role)
