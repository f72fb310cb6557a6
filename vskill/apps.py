"""The Django app of the project package: its system checks, commands and templates."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.backends.signals import connection_created

from vskill.private_files import keep_database_private


class VskillConfig(AppConfig):
    """Configure the app ``vskill``: environments, worker context, settings checks."""

    name = "vskill"
    verbose_name = "vskill"

    def ready(self) -> None:
        """Register the system checks, and what keeps the database private."""
        from vskill import checks  # noqa: F401, PLC0415 - registers them; apps must be ready first

        connection_created.connect(keep_database_private, dispatch_uid="vskill.private_files")
