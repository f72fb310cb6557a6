"""The database router: an entry is read and written in the database of the current worker environment."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import Model

from vskill.worker_context import get_worker_env

ROUTED_APPS: Final = frozenset({"kv", "marketplace", "submissions"})


class WorkerEnvRouter:
    """Route the models of the three apps to the alias of the current environment; leave the rest to Django."""

    def db_for_read(self, model: type[Model], **_hints: Any) -> str | None:
        """Return the alias to read ``model`` from, or ``None`` for Django's own choice."""
        if model._meta.app_label not in ROUTED_APPS:
            return None
        env = get_worker_env()
        return env.database if env is not None else None

    db_for_write = db_for_read
