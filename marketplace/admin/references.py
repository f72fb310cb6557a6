"""The operators' view of what published versions refer to: what changed, what fails, and when it was looked at last."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString

from marketplace.models import ReferenceEntry
from marketplace.models.references import ADDRESS_PREFIX
from marketplace.reference_changes import ACTOR
from vskill.processes.last_runs import LastRun, last_run
from vskill.read_only_admin import ChoiceFilter, ReadOnlyAdmin, prefix_range, pretty_json
from vskill.worker_context import require_worker_env

_LONGEST_SHOWN: Final = 50


class StateFilter(ChoiceFilter):
    """Uses that have changed since the check of their version, or addresses that are not reached."""

    title = "state"
    parameter_name = "state"
    choices_offered = (("changed", "changed since the check"), ("failing", "not reached"), ("addresses", "addresses"))

    def condition(self, choice: str) -> Q | None:
        """Return the condition of a state."""
        return {
            "changed": Q(changed_at__isnull=False, version_number__isnull=False),
            "failing": Q(failures__gt=0),
            "addresses": prefix_range("key", ADDRESS_PREFIX),
        }.get(choice)


@admin.register(ReferenceEntry)
class ReferenceAdmin(ReadOnlyAdmin):
    """Addresses that are fetched again, and their uses by versions."""

    list_display = ("shown_url", "version_number", "changed_at", "failures", "due_at")
    list_filter = (StateFilter,)
    search_fields = ("key",)
    search_help_text = "The beginning of a key, such as address: or use:"
    ordering = ("-id",)
    fields = ("key", "url", "host", "version_number", "changed_at", "failures", "due_at", "content")
    readonly_fields = fields

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list below a line that says when the addresses were fetched last."""
        words = last_run_words(last_run(require_worker_env(), ACTOR))
        context = {"subtitle": words, **(extra_context or {})}
        return super().changelist_view(request, context)

    @admin.display(description="address")
    def shown_url(self, row: ReferenceEntry) -> str:
        """Return the address, cut where it would push the other columns out of sight."""
        return row.url if len(row.url) <= _LONGEST_SHOWN else f"{row.url[:_LONGEST_SHOWN]}…"

    @admin.display(description="value")
    def content(self, row: ReferenceEntry) -> SafeString:
        """Return the value, indented."""
        return pretty_json(row.value)


def last_run_words(run: LastRun) -> str:
    """Return in a sentence when ``watch_references`` ran last and what it did."""
    if run.ended_at is None:
        return "watch_references has not run yet."
    said = run.said
    sentence = (
        f"Last fetched {run.ended_at:%Y-%m-%d %H:%M} UTC: {said.get('fetched')} fetched, "
        f"{said.get('changed')} versions flagged, {said.get('failed')} failed, {said.get('left')} left."
    )
    return f"{sentence} That is overdue: is the scheduler or cron running?" if run.overdue else sentence
