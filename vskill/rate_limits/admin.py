"""The operators' view of the counts that processes share: which clients come near their limits."""

from __future__ import annotations

from datetime import UTC, datetime

from django.contrib import admin

from vskill.rate_limits.models import RequestCount
from vskill.read_only_admin import ReadOnlyAdmin


@admin.register(RequestCount)
class RequestCountAdmin(ReadOnlyAdmin):
    """Show the counts of one environment, the highest first; ended ones count as 0 and are deleted in time."""

    list_display = ("key", "count", "window_ends")
    ordering = ("-count", "key")
    search_fields = ("key",)
    search_help_text = "the beginning of a key, such as reads/203.0.113.7"

    @admin.display(description="window ends")
    def window_ends(self, row: RequestCount) -> datetime:
        """Return when the window ends."""
        return datetime.fromtimestamp(row.ends_at, UTC)
