"""The Django app of the project package: its system checks, commands and templates."""

from __future__ import annotations

from django.apps import AppConfig


class VskillConfig(AppConfig):
    """Configure the app ``vskill``: environments, worker context, settings checks."""

    name = "vskill"
    verbose_name = "vskill"

    def ready(self) -> None:
        """Register the system checks and the admin of entries."""
        from vskill import checks, entry_admin  # noqa: F401, PLC0415 - importing registers them; apps must be ready first
