"""Say which full-text engine a database has: this is the one place that knows."""

from __future__ import annotations

from typing import Final

from django.db import connections

from marketplace.search.engine import SearchEngine
from marketplace.search.postgresql import PostgresqlEngine
from marketplace.search.sqlite import SqliteEngine

_ENGINES: Final[dict[str, type[SearchEngine]]] = {"sqlite": SqliteEngine, "postgresql": PostgresqlEngine}


def engine_of(alias: str) -> SearchEngine:
    """Return the engine of the database ``alias``, for the searches of one request."""
    return _ENGINES[connections[alias].vendor](alias)
