"""Reports of visitors in the admin: those that wait first, each dismissed or followed by a flag or a quarantine."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from marketplace.models import VisitorReport
from marketplace.visitor_reports.reports import (
    REASONS,
    ReportState,
    dismiss,
    flag_reported,
    open_reports,
    quarantine_reported,
)
from vskill.operations_admin import OperationsAdmin, RowOperation
from vskill.read_only_admin import ChoiceFilter
from vskill.worker_context import require_worker_env

OPERATIONS: Final = {
    one.name: one
    for one in (
        RowOperation("dismiss", "Dismiss", "The report is closed, and nothing else changes.", dismiss),
        RowOperation(
            "flag",
            "Flag the version",
            "Pages, lists and clients warn of the reported version, with your reason.",
            flag_reported,
        ),
        RowOperation(
            "quarantine",
            "Quarantine the skill",
            "The skill disappears from every page, list, search and index, and none of its files can be fetched.",
            quarantine_reported,
        ),
    )
}


class StateFilter(ChoiceFilter):
    """Reports in one state."""

    title = "state"
    parameter_name = "state"
    choices_offered = tuple((str(one), str(one)) for one in ReportState)


@admin.register(VisitorReport)
class ReportAdmin(OperationsAdmin):
    """What visitors reported; their words are shown as they wrote them, as text."""

    list_display = ("created_at", "shown_skill", "version", "shown_reason", "state", "decided_by")
    list_filter = (StateFilter,)
    list_select_related = ("skill",)
    ordering = ("-id",)
    sortable_by = ()
    actions = tuple(OPERATIONS)
    fields = (
        *("created_at", "shown_skill", "version", "shown_reason", "evidence", "contact", "open_of_skill"),
        *("state", "decided_by", "decided_at", "decision_reason", "reference"),
    )
    readonly_fields = fields
    operations = OPERATIONS
    operate_template = "admin/marketplace/operate_report.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the reports with their skills."""
        return super().get_queryset(request).select_related("skill")

    def name_of(self, target: VisitorReport) -> str:
        """Return the slug and number of a report."""
        return f"{target.skill.slug} ({target.pk})"

    @admin.display(description="skill")
    def shown_skill(self, row: VisitorReport) -> SafeString:
        """Return a link to the skill in the admin."""
        address = reverse("admin:marketplace_skillentry_change", args=[row.skill_id])
        return format_html('<a href="{}">{}</a>', address, row.skill.slug)

    @admin.display(description="why")
    def shown_reason(self, row: VisitorReport) -> str:
        """Return the reason in words."""
        return REASONS.get(row.reason, row.reason)

    @admin.display(description="open reports of this skill")
    def open_of_skill(self, row: VisitorReport) -> int:
        """Return how many reports of the same skill wait for a decision."""
        return open_reports(require_worker_env(), row.skill)
