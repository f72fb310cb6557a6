"""A column without its indexes, for conditions of which the database cannot tell how few rows they leave."""

from __future__ import annotations

from typing import Any

from django.db.models import Func


class Unindexed(Func):
    """A column that SQLite compares row by row: without statistics it cannot tell which index leaves fewer rows."""

    arity = 1
    template = "%(expressions)s"

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Return the column with a sign, which no index has."""
        return self.as_sql(compiler, connection, template="+%(expressions)s", **context)
