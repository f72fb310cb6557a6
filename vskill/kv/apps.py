"""The Django app of the KV layer."""

from __future__ import annotations

import gc
from typing import Final

from django.apps import AppConfig

PYTHONS_OWN_THRESHOLD: Final = (700, 10, 10)
READING_THRESHOLD: Final = (50_000, 20, 100)


class KVConfig(AppConfig):
    """Configure the app ``kv``: key-value entries in a table."""

    name = "vskill.kv"
    label = "kv"
    verbose_name = "Key-value entries"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Make the garbage collector run less often, unless its thresholds have been changed already.

        A chunk of 500 documents makes some 4,000 objects that live until they are yielded and never form a cycle.
        With Python's default thresholds the collector examines them five times a chunk, and the whole process every
        few chunks, which took up to half of the time of a long read.
        """
        if gc.get_threshold() == PYTHONS_OWN_THRESHOLD:
            gc.set_threshold(*READING_THRESHOLD)
