"""What every admin of the product shares: rows of one environment, shown but not edited by hand."""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db import connections
from django.db.models import Model, Q, QuerySet
from django.db.models.sql.where import WhereNode
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from vskill.hidden_characters import reveal_hidden
from vskill.kv.codec import decode, prefix_end
from vskill.worker_context import require_worker_env


def prefix_range(column: str, text: str) -> Q:
    """Return the condition that ``column`` starts with ``text``, in a form that an index of the database answers.

    It is for rows of the current environment, whose database decides the form: SQLite scans the whole table for LIKE,
    and under most collations of PostgreSQL a range selects other rows than the prefix does.
    """
    if connections[require_worker_env().database].vendor == "postgresql":
        return Q(**{f"{column}__startswith": text})
    end = prefix_end(text)
    lower = Q(**{f"{column}__gte": text})
    return lower & Q(**{f"{column}__lt": end}) if end is not None else lower


# Counting walks over every row, and no operator pages past this many.
MOST_COUNTED: Final = 2_000
# No primary key is longer, and SQLite raises an error for a larger integer.
_NUMBER: Final = re.compile(r"\d{1,18}", re.ASCII)


def row_numbers(text: str) -> list[str]:
    """Return the primary keys in a comma-separated list, without the items that cannot be one."""
    return [one for one in text.split(",") if _NUMBER.fullmatch(one)]


def pretty_json(text: str) -> SafeString:
    """Return stored JSON as HTML, indented and sorted by key; text that is not JSON is shown as it is, with a warning.

    Hidden characters and unpaired surrogates, which a response cannot encode, are spelled out.
    """
    try:
        shown = json.dumps(decode(text), indent=2, ensure_ascii=False, sort_keys=True)
    except (ValueError, RecursionError) as error:
        return format_html("<p><strong>Malformed: {}</strong></p><pre>{}</pre>", error, reveal_hidden(text))
    return format_html("<pre>{}</pre>", reveal_hidden(shown.encode(errors="backslashreplace").decode()))


class ChoiceFilter(admin.SimpleListFilter):
    """Narrow a list by one of a few fixed choices.

    A choice is a value of the column ``parameter_name``, unless a subclass overrides ``condition``.
    """

    choices_offered: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Each choice as it appears in the query string, and its label."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the choices with their labels."""
        return list(self.choices_offered)

    def condition(self, choice: str) -> Q | None:
        """Return the condition that a choice stands for, or ``None`` to leave the list as it is."""
        return Q(**{str(self.parameter_name): choice})

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows that fit the choice, or all rows where nothing was chosen."""
        choice = self.value()
        condition = self.condition(choice) if choice else None
        return queryset if condition is None else queryset.filter(condition)


if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
    _Paginator = Paginator[Any]
else:
    # Only type checkers know the classes as generic.
    _ModelAdmin = admin.ModelAdmin
    _Paginator = Paginator


class AtLeast(int):
    """A count that was not taken further; pages show it with a plus."""

    def __str__(self) -> str:
        """Return the number with a plus."""
        return f"{int(self)}+"


class BoundedPaginator(_Paginator):
    """Paginate a list without counting further than ``MOST_COUNTED``."""

    @cached_property
    def count(self) -> int:
        """Return how many rows there are, or that there are more than ``MOST_COUNTED``."""
        rows: Any = self.object_list
        # The keys alone, so that nothing is computed for a row that is only counted.
        found = int(rows.order_by().values("pk")[: MOST_COUNTED + 1].count())
        return AtLeast(MOST_COUNTED) if found > MOST_COUNTED else found

    def page(self, number: Any) -> Any:
        """Return a page, found by the keys of its rows: of the rows before it nothing is read but an index."""
        page: Any = super().page(number)
        keys = list(page.object_list.values_list("pk", flat=True))
        given: Any = self.object_list
        whole = given.order_by()
        # They passed the conditions, with which SQLite would read the rows of the environment instead.
        whole.query.where = WhereNode()
        rows = whole.in_bulk(keys)
        # One that was deleted in between is left out.
        page.object_list = [rows[key] for key in keys if key in rows]
        return page


class _IndexedChangeList(ChangeList):
    """Order a list by what its admin offers, and not by any column that somebody writes into the address."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Appended to each address by ourselves: the template tag for it resolves the address of every row.
        self._kept, self.preserved_filters = self.preserved_filters, ""
        options = self.model._meta
        self._list = reverse(f"{self.model_admin.admin_site.name}:{options.app_label}_{options.model_name}_changelist")

    def url_for_result(self, result: Model) -> str:
        address = f"{self._list}{quote(result.pk)}/change/"
        return f"{address}?{self._kept}" if self._kept else address

    def get_ordering_field(self, field_name: Any) -> Any:
        return super().get_ordering_field(field_name) if field_name in (self.sortable_by or ()) else None


class ReadOnlyAdmin(_ModelAdmin):
    """Show rows of the current environment; nothing is added, edited or deleted by hand.

    A list is counted up to a bound. ``sortable_by`` names the columns that an index orders by, where there may be many
    rows; ``None`` is any column.
    """

    show_full_result_count = False
    # They count the whole list once for each choice of each filter.
    show_facets = admin.ShowFacets.NEVER
    paginator = BoundedPaginator
    # Each row costs more than the query: of these a page takes thrice the time of one without a list.
    list_per_page = 30
    environment_column: ClassVar[str] = "namespace"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows of the environment that the host name selects."""
        env = require_worker_env()
        rows: QuerySet[Any] = self.model._default_manager.using(env.database)
        return rows.filter(**{self.environment_column: env.name}).order_by(*self.get_ordering(request))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Return the list that keeps to the orders of ``sortable_by``."""
        return _IndexedChangeList

    def search_condition(self, term: str) -> Q:
        """Return the condition for a search term, which an index must answer; by default a prefix of the first field.

        ``term`` is stripped and not empty.
        """
        return prefix_range(self.search_fields[0], term)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the rows that fit ``search_condition``, and that there are no duplicates among them."""
        term = search_term.strip().replace("\0", "")
        # A list without a search shows all that it has, as Django's own do.
        found = queryset.filter(self.search_condition(term)) if term and self.search_fields else queryset
        return found, False

    @admin.display(description=mark_safe('<input type="checkbox" id="action-toggle">'))
    def action_checkbox(self, obj: Model) -> SafeString:
        """Return the box that chooses a row; Django renders a template for each."""
        return format_html(
            '<input type="checkbox" name="{}" value="{}" class="action-select" aria-label="{}">',
            ACTION_CHECKBOX_NAME,
            obj.pk,
            f"Select this object for an action - {obj}",
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return ``False``: nothing is added by hand."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return ``False``: nothing is deleted by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return ``False``: nothing is edited by hand. Operations check the permission themselves."""
        return False
