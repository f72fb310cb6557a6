"""The app of Django's admin, with a site that asks for roles; it is imported before there are models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core.checks import CheckMessage, Tags, register


class RoleAdminConfig(SimpleAdminConfig):
    """Django's admin on the site ``vskill.accounts.admin_site.RoleAdminSite``.

    The admins are found when the addresses are read, or when they are checked, and not at each start: they import most
    of the product, and a command that cron starts every minute needs none of it.
    """

    default_site = "vskill.accounts.admin_site.RoleAdminSite"

    def ready(self) -> None:
        """Register the system checks of the admin."""
        register(check_dependencies, Tags.admin)
        register(check_every_admin, Tags.admin)


def check_every_admin(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Find the admins, and check them as Django does, which would check those that were found by chance."""
    admin.autodiscover()
    return check_admin_app(app_configs, **kwargs)
