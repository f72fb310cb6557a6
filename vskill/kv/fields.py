"""Model fields of the KV layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.expressions import Combinable

if TYPE_CHECKING:
    # Generic in the stubs only.
    CharField = models.CharField[str | Combinable, str]
else:
    CharField = models.CharField


class KeyField(CharField):
    """A text column that compares byte by byte on every database.

    SQLite's default collation does so. PostgreSQL needs the collation ``C``: under any other, a listing would follow
    the language rules of the server and a range over a prefix would miss keys.
    """

    def db_parameters(self, connection: BaseDatabaseWrapper) -> dict[str, Any]:
        """Return the column's parameters, with the collation ``C`` on PostgreSQL."""
        parameters: dict[str, Any] = super().db_parameters(connection)
        if connection.vendor == "postgresql":
            parameters["collation"] = "C"
        return parameters
