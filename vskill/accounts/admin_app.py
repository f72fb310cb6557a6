"""The app of Django's admin, with a site that asks for roles; it is imported before there are models."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig


class RoleAdminConfig(AdminConfig):
    """Django's admin on the site ``vskill.accounts.admin_site.RoleAdminSite``."""

    default_site = "vskill.accounts.admin_site.RoleAdminSite"
