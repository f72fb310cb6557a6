"""Ask for exactly the rows that a partial index holds, in words that every database recognises."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.expressions import Expression
from django.db.models.sql.compiler import SQLCompiler
from django.db.models.sql.query import Query


class InPartialIndex(Expression):
    """Be true for the rows of a partial index; used in ``filter()``.

    SQLite uses a partial index only where a query repeats the condition of the index in the same words, and a list of
    parameters is not the list of values that stands in the index: such a query reads the whole table. This writes the
    condition as the index was created, with its values.
    """

    conditional = True
    output_field = models.BooleanField()

    def __init__(self, model: type[models.Model], index: str) -> None:
        super().__init__()
        self.model = model
        [found] = [one for one in model._meta.indexes if one.name == index]
        if found.condition is None:
            raise ValueError(f"{index} is no partial index.")
        self.condition = found.condition

    def __repr__(self) -> str:
        return f"<InPartialIndex {self.condition}>"

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:  # noqa: ARG002 - Django's signature
        """Return the condition with its values in it."""
        query = Query(model=self.model, alias_cols=False)
        sql, parameters = query.build_where(self.condition).as_sql(
            query.get_compiler(connection=connection), connection
        )
        return sql % tuple(_literal(parameter) for parameter in parameters), ()


def _literal(value: object) -> str:
    """Return a constant of a model's index as SQL, with percent signs doubled for the statement it becomes part of."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''").replace("%", "%%") + "'"
    raise ValueError(f"A partial index with {value!r} in its condition is not understood here, only texts are.")
