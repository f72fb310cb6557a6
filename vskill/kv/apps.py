"""The Django app of the KV layer."""

from __future__ import annotations

from django.apps import AppConfig


class KVConfig(AppConfig):
    """Configure the app ``kv``: key-value entries in a table."""

    name = "vskill.kv"
    label = "kv"
    verbose_name = "Key-value entries"
    default_auto_field = "django.db.models.BigAutoField"
