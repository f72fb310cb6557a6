"""The Django app of the marketplace."""

from __future__ import annotations

from django.apps import AppConfig


class MarketplaceConfig(AppConfig):
    """Published skills: pages, API, archives, search."""

    name = "marketplace"
    verbose_name = "Marketplace"
