"""The Django app of the marketplace."""

from __future__ import annotations

from django.apps import AppConfig


class MarketplaceConfig(AppConfig):
    """The app of published skills: pages, API, archives, search."""

    name = "marketplace"
    verbose_name = "Marketplace"

    def ready(self) -> None:
        """Register the system checks."""
        from marketplace import signing_checks  # noqa: F401, PLC0415 - registers them; apps must be ready first
