"""What every admin of the product shares: rows of one environment, shown and never edited by hand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.db import connections
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from vskill.kv.codec import prefix_end
from vskill.worker_context import require_worker_env


def prefix_range(column: str, text: str) -> Q:
    """Return the condition that a column of the current environment starts with ``text``, in words that an index
    answers.

    SQLite reads the whole table for LIKE; a range means something else in PostgreSQL under most collations.
    """
    if connections[require_worker_env().database].vendor == "postgresql":
        return Q(**{f"{column}__startswith": text})
    end = prefix_end(text)
    lower = Q(**{f"{column}__gte": text})
    return lower & Q(**{f"{column}__lt": end}) if end is not None else lower


# No row has a longer number, and SQLite refuses to look for one.
_NUMBER: Final = re.compile(r"\d{1,18}", re.ASCII)


def row_numbers(text: str) -> list[str]:
    """Return the numbers of rows in a list that commas separate; what no row can have is left out."""
    return [one for one in text.split(",") if _NUMBER.fullmatch(one)]


if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    # The class takes its parameter from type checkers alone.
    _ModelAdmin = admin.ModelAdmin


class ReadOnlyAdmin(_ModelAdmin):
    """Show rows of the current environment; nothing is added, edited or deleted by hand."""

    show_full_result_count = False
    list_per_page = 50
    environment_column: ClassVar[str] = "namespace"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows of the environment that the host name chose."""
        env = require_worker_env()
        rows: QuerySet[Any] = self.model._default_manager.using(env.database)
        return rows.filter(**{self.environment_column: env.name}).order_by(*self.get_ordering(request))

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nothing is added by hand."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nothing is deleted by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nothing is edited by hand; operations ask for the permission themselves."""
        return False
