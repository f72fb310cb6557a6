"""The admin's site: open to staff, and to whoever has a role here that works in it."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.admin.forms import AdminAuthenticationForm
from django.http import HttpRequest

from vskill.accounts.roles import Action, may
from vskill.worker_context import require_worker_env


def works_here(user: Any) -> bool:
    """Return whether the admin is open to ``user`` in the current environment; permissions decide what it shows."""
    return bool(user.is_active) and (bool(user.is_staff) or may(user, require_worker_env(), Action.REVIEW))


class LoginForm(AdminAuthenticationForm):
    """The form of the admin's login, which also lets in reviewers and those above them."""

    def confirm_login_allowed(self, user: Any) -> None:
        """Refuse whoever does not work here, in the words for a wrong password."""
        if not works_here(user):
            super().confirm_login_allowed(user)


class RoleAdminSite(AdminSite):
    """Django's site, which asks for a role as well as for staff."""

    login_form = LoginForm

    def has_permission(self, request: HttpRequest) -> bool:
        """Return whether the user of this request works in this environment."""
        return works_here(request.user)
