"""The Django app of the limits of clients."""

from __future__ import annotations

from django.apps import AppConfig


class RateLimitsConfig(AppConfig):
    """Configure the app ``rate_limits``: counts of requests in a table."""

    name = "vskill.rate_limits"
    label = "rate_limits"
    verbose_name = "Limits of clients"
    default_auto_field = "django.db.models.BigAutoField"
