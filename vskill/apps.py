"""The project package as an app: its checks, its command ``up``, its templates."""

from __future__ import annotations

from django.apps import AppConfig


class VskillConfig(AppConfig):
    """The ground floor: environments, worker context, settings checks."""

    name = "vskill"
    verbose_name = "vskill"

    def ready(self) -> None:
        """Register the system checks."""
        from vskill import checks  # noqa: F401, PLC0415 - importing registers them; apps must be ready first
