"""The operators' view of entries: read-only, searched by key prefix, and counted only up to a bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString

from vskill.kv.codec import prefix_end
from vskill.kv.models import AbstractKVEntry, KVEntry
from vskill.read_only_admin import ReadOnlyAdmin, prefix_range, pretty_json

_MOST_KINDS: Final = 30


class KindFilter(admin.SimpleListFilter):
    """Filter entries by kind, which is the key up to its first colon."""

    title = "kind"
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the kinds that exist, as pairs of parameter value and label."""
        return [(kind, kind.rstrip(":")) for kind in _kinds(model_admin.get_queryset(request))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the entries of the chosen kind, or all of them where none is chosen."""
        return queryset.filter(prefix_range("key", self.value() or "")) if self.value() else queryset


def _kinds(rows: QuerySet[Any]) -> Iterator[str]:
    """Yield each key prefix up to its first colon, with one index lookup for each instead of a scan of the table."""
    following: str | None = ""
    for _step in range(_MOST_KINDS):
        ahead = rows.order_by("key").values_list("key", flat=True)
        key = (ahead.filter(key__gte=following) if following else ahead).first()
        if key is None:
            return
        kind = key[: key.find(":") + 1] or key
        yield kind
        following = prefix_end(kind)
        if following is None:
            return


@admin.register(KVEntry)
class KVEntryAdmin(ReadOnlyAdmin):
    """Show entries that have no table of their own: heartbeats, pauses, recoveries, the block list."""

    # A list and not a tuple, whose type would fix the number of columns for every subclass.
    list_display = ["key", "version", "updated_at", "expiry"]
    list_filter: ClassVar[tuple[type[admin.SimpleListFilter], ...]] = (KindFilter,)
    search_fields = ("key",)
    search_help_text = "The beginning of a key, such as blocked: or recovery:sub_"
    ordering = ("key",)
    sortable_by = ("key",)
    fields = ("key", "version", "expiry", "created_at", "updated_at", "pretty_metadata", "pretty")
    readonly_fields = fields

    @admin.display(description="expires", ordering="expires_at")
    def expiry(self, entry: AbstractKVEntry) -> str:
        """Return when an entry expires, with a mark where it has expired and is not purged yet."""
        if entry.expires_at is None:
            return "never"
        mark = " (expired)" if entry.expires_at <= timezone.now() else ""
        return f"{entry.expires_at:%Y-%m-%d %H:%M:%S} UTC{mark}"

    @admin.display(description="value")
    def pretty(self, entry: AbstractKVEntry) -> SafeString:
        """Return the value, indented."""
        return pretty_json(entry.value)

    @admin.display(description="metadata")
    def pretty_metadata(self, entry: AbstractKVEntry) -> SafeString:
        """Return the metadata, indented."""
        return pretty_json(entry.metadata)
