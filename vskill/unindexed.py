"""Conditions that are compared row by row, because the database cannot tell how few rows they leave."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, Func
from django.db.models.lookups import In


class Unindexed(Func):
    """A column that SQLite compares row by row: without statistics it cannot tell which index leaves fewer rows."""

    arity = 1
    template = "%(expressions)s"

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Return the column with a sign, which no index has."""
        return self.as_sql(compiler, connection, template="+%(expressions)s", **context)


class AskedOfEach(Exists):
    """A condition that PostgreSQL asks of each row that it meets: it would read all rows of the query, to join them."""

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Return a value that is there or not, of which no join is made."""
        return self.as_sql(compiler, connection, template="(%(subquery)s) IS NOT NULL", **context)


class InRead(In):
    """A column that is one of those that a query returns, which is read once, and then asked for each row.

    Without this, PostgreSQL joins what the query returns, and SQLite begins with it.
    """

    def get_rhs_op(self, connection: Any, rhs: str) -> str:
        """Return the comparison, of which PostgreSQL makes no join."""
        compared = super().get_rhs_op(connection, rhs)
        return f"{compared} IS TRUE" if connection.vendor == "postgresql" else compared

    def process_lhs(self, compiler: Any, connection: Any, lhs: Any = None) -> Any:
        """Return the column, for SQLite with a sign, which no index has."""
        column, parameters = super().process_lhs(compiler, connection, lhs)
        return (f"+{column}", parameters) if connection.vendor == "sqlite" else (column, parameters)
