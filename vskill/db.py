"""The database router, by which models live in the database of the current worker environment, and prepared cursors."""

from __future__ import annotations

from typing import Any, Final

from django.db import connections
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


def prepared_cursor(alias: str) -> Any:
    """Return a cursor whose statements PostgreSQL parses and plans once for a connection; on SQLite any cursor.

    It is for statements whose text is always the same and whose best plan hangs on no value, such as look-ups of an
    index: a statement with many parts takes longer to plan than to run.
    """
    connection = connections[alias]
    make = getattr(connection, "prepared_cursor", connection.cursor)
    return make()
