"""The database router: the models of the product live in the database of the current worker environment."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import Model

from vskill.worker_context import get_worker_env

ROUTED_APPS: Final = frozenset({"kv", "rate_limits", "marketplace", "submissions"})


class WorkerEnvRouter:
    """Route the models of ``ROUTED_APPS`` to the database of the current environment, and leave others to Django."""

    def db_for_read(self, model: type[Model], **_hints: Any) -> str | None:
        """Return the alias of the database to read ``model`` from, or ``None`` to leave the choice to Django."""
        if model._meta.app_label not in ROUTED_APPS:
            return None
        env = get_worker_env()
        return env.database if env is not None else None

    db_for_write = db_for_read
