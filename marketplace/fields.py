"""Model fields of the marketplace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from vskill.kv.codec import decode, encode

if TYPE_CHECKING:
    _TextField = models.TextField[Any, Any]
else:
    # At run time Django's fields take no type arguments.
    _TextField = models.TextField


class JSONTextField(_TextField):
    """A text column that holds JSON with every character outside ASCII escaped.

    PostgreSQL's jsonb rejects NUL and lone surrogates, and excerpts of hostile files contain both. Escaped in a text
    column they survive on every database.
    """

    def from_db_value(self, value: str | None, _expression: Any, _connection: BaseDatabaseWrapper) -> Any:
        """Return the decoded value."""
        return None if value is None else decode(value)

    def to_python(self, value: Any) -> Any:
        """Return the value unchanged, because no form writes this field."""
        return value

    def get_prep_value(self, value: Any) -> Any:
        """Return the value as JSON text."""
        return None if value is None else encode(value)

    def value_to_string(self, obj: models.Model) -> str:
        """Return the JSON text, for fixtures."""
        return encode(self.value_from_object(obj))


def indexes_by_time(prefix: str, *columns: str) -> list[models.Index]:
    """Return an index for each time in ``columns``, of the rows that have it; ``prefix`` begins its name."""
    return [
        models.Index(
            fields=["namespace", f"-{column}", "-id"],
            condition=models.Q(**{f"{column}__isnull": False}),
            name=f"{prefix}_{column.removesuffix('_at')}",
        )
        for column in columns
    ]
