"""Filter for exactly the rows of a partial index, in SQL by which every database recognises the index."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.expressions import Expression
from django.db.models.sql.compiler import SQLCompiler
from django.db.models.sql.query import Query


class InPartialIndex(Expression):
    """The condition of a partial index of ``model``, for ``filter()``.

    SQLite uses a partial index only where the query repeats the index's condition literally. A query with parameters
    in place of the values does not, and reads the whole table. This expression writes the condition as the index was
    created, with its values. They have to be texts: the query raises ``ValueError`` for any other.
    """

    conditional = True
    output_field = models.BooleanField()

    def __init__(self, model: type[models.Model], index: str) -> None:
        """Take the condition of the index named ``index``; raise ``ValueError`` where that is no partial index."""
        super().__init__()
        self.model = model
        [found] = [one for one in model._meta.indexes if one.name == index]
        if found.condition is None:
            raise ValueError(f"{index} is no partial index.")
        self.condition = found.condition

    def __repr__(self) -> str:
        return f"<InPartialIndex {self.condition}>"

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:  # noqa: ARG002 - Django's signature
        """Return the condition with its values as literals, and no parameters."""
        query = Query(model=self.model, alias_cols=False)
        sql, parameters = query.build_where(self.condition).as_sql(
            query.get_compiler(connection=connection), connection
        )
        return sql % tuple(_literal(parameter) for parameter in parameters), ()


def _literal(value: object) -> str:
    """Return ``value`` as an SQL literal, with percent signs doubled because the statement has placeholders."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''").replace("%", "%%") + "'"
    raise ValueError(f"A partial index with {value!r} in its condition is not understood here, only texts are.")
