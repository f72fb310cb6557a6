"""The Django app of the access tokens."""

from __future__ import annotations

from django.apps import AppConfig


class AccessTokensConfig(AppConfig):
    """Configure the app ``access_tokens``: hashes of tokens in a table beside the accounts."""

    name = "vskill.access_tokens"
    label = "access_tokens"
    verbose_name = "Access tokens"
    default_auto_field = "django.db.models.BigAutoField"
