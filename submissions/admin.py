"""The operators' view of submissions: everything is shown, and changed only by named operations."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.timesince import timesince

from submissions.models import SubmissionEntry
from submissions.operations import OPERATIONS, Operation
from submissions.presentation import submission_path, timeline
from submissions.states import STATES, STUCK_STATES, State
from submissions.store.queries import history
from vskill.errors import VskillError
from vskill.read_only_admin import ReadOnlyAdmin, prefix_range, row_numbers
from vskill.worker_context import require_worker_env


class StuckFilter(admin.SimpleListFilter):
    """Submissions that have not moved for longer than the threshold."""

    title = "movement"
    parameter_name = "movement"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer the one choice."""
        return [("stuck", f"not moved for {settings.STUCK_THRESHOLD_SECONDS / 60:g} minutes")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[SubmissionEntry]) -> QuerySet[SubmissionEntry]:
        """Cut the list down, by the partial index that recovery uses."""
        if self.value() != "stuck":
            return queryset
        threshold = Now() - timedelta(seconds=settings.STUCK_THRESHOLD_SECONDS)
        return queryset.filter(state__in=sorted(STUCK_STATES), state_at__lte=threshold)


class StateFilter(admin.SimpleListFilter):
    """One state, by the index over it."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer every state in its own words."""
        return [(state, f"{info.label} ({state})") for state, info in STATES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[SubmissionEntry]) -> QuerySet[SubmissionEntry]:
        """Cut the list down."""
        return queryset.filter(state=self.value()) if self.value() else queryset


@admin.register(SubmissionEntry)
class SubmissionAdmin(ReadOnlyAdmin):
    """Submissions: their state and age, why, and what an operator can do."""

    list_display = ("skill", "state_label", "age", "verdict", "source")
    list_display_links = ("skill",)
    list_filter = (StateFilter, StuckFilter)
    search_fields = ("key",)
    search_help_text = "The start of a submission id (sub_…), of a repository address, or a skill's exact name"
    ordering = ("-submitted_at",)
    actions = tuple(OPERATIONS)
    fields = ("skill", "state_label", "reason", "age", "page", "steps", "key", "version", "content")
    readonly_fields = fields

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search by ranges that the indexes answer."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if term.startswith("sub_"):
            return queryset.filter(prefix_range("key", f"sub:{term}")), False
        if "/" in term or "." in term:
            address = term if "://" in term else f"https://{term}"
            return queryset.filter(prefix_range("repo_url", address)), False
        return queryset.filter(skill_name=term), False

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Tell whether this operator may move submissions: the permission to change them."""
        user: Any = request.user
        return bool(user.has_perm("submissions.change_submissionentry"))

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Offer the operations to those who may use them."""
        if not self.has_operate_permission(request):
            return {}
        return {name: (_start(operation), name, operation.label) for name, operation in OPERATIONS.items()}

    def get_urls(self) -> list[URLPattern]:
        """Add the confirmation page."""
        operate = path(
            "operate/<str:name>/", self.admin_site.admin_view(self.operate), name="submissions_submissionentry_operate"
        )
        return [operate, *super().get_urls()]

    def operate(self, request: HttpRequest, name: str) -> HttpResponse:
        """Ask for the reason and a confirmation, then do it: each submission by itself."""
        if not self.has_operate_permission(request):
            raise PermissionDenied
        operation = OPERATIONS.get(name)
        if operation is None:
            raise Http404
        entries = list(self.get_queryset(request).filter(pk__in=row_numbers(request.GET.get("ids", ""))))
        reason = request.POST.get("reason", "").strip()
        if request.method == "POST" and reason:
            self._run(request, operation, entries, reason)
            return HttpResponseRedirect(reverse("admin:submissions_submissionentry_changelist"))
        context = {
            **self.admin_site.each_context(request),
            "title": operation.label,
            "operation": operation,
            "entries": entries,
            "missing_reason": request.method == "POST",
            "opts": self.model._meta,
        }
        return TemplateResponse(request, "admin/submissions/operate.html", context)

    def _run(self, request: HttpRequest, operation: Operation, entries: list[SubmissionEntry], reason: str) -> None:
        env = require_worker_env()
        actor = request.user.get_username()
        done = 0
        for entry in entries:
            try:
                operation.run(env, entry.submission_id, actor=actor, reason=reason)
                done += 1
            except (VskillError, DatabaseError) as error:
                self.message_user(request, f"{entry.skill_name or entry.submission_id}: {error}", messages.ERROR)
        if done:
            self.message_user(request, f"{operation.label}: {done} of {len(entries)} done.", messages.SUCCESS)

    @admin.display(description="skill", ordering="skill_name")
    def skill(self, entry: SubmissionEntry) -> str:
        """Return what the skill is called."""
        return entry.skill_name or entry.submission_id

    @admin.display(description="state", ordering="state")
    def state_label(self, entry: SubmissionEntry) -> str:
        """Return the state in words; an entry whose state nobody knows says so."""
        info = STATES.get(State(entry.state)) if entry.state in State.__members__ else None
        return info.label if info is not None else "unreadable"

    @admin.display(description="last move", ordering="state_at")
    def age(self, entry: SubmissionEntry) -> str:
        """Return how long ago it moved, with a mark where it is stuck."""
        if entry.state_at is None:
            return "unknown"
        stuck_at = timezone.now() - timedelta(seconds=settings.STUCK_THRESHOLD_SECONDS)
        mark = " (stuck)" if entry.state in STUCK_STATES and entry.state_at <= stuck_at else ""
        return f"{timesince(entry.state_at, depth=1)} ago{mark}"

    @admin.display(description="source", ordering="repo_url")
    def source(self, entry: SubmissionEntry) -> str:
        """Return the repository and the folder in it."""
        return f"{entry.repo_url} {entry.skill_path}".strip()

    @admin.display(description="reason")
    def reason(self, entry: SubmissionEntry) -> str:
        """Return why it is where it is."""
        return str(_value(entry).get("reason", "")) or "-"

    @admin.display(description="page")
    def page(self, entry: SubmissionEntry) -> SafeString:
        """Return a link to what the submitter sees, findings included."""
        address = submission_path(entry.submission_id)
        return format_html('<a href="{}">{}</a>', address, address)

    @admin.display(description="what happened")
    def steps(self, entry: SubmissionEntry) -> SafeString:
        """Return the steps as a table."""
        rows = timeline(history(require_worker_env(), entry.submission_id))
        return mark_safe(render_to_string("admin/submissions/steps.html", {"steps": rows}))  # noqa: S308 - a template escapes

    @admin.display(description="value")
    def content(self, entry: SubmissionEntry) -> SafeString:
        """Return the value, indented, or as it is where it is not JSON."""
        return format_html("<pre>{}</pre>", json.dumps(_value(entry), indent=2) if _value(entry) else entry.value)


def _value(entry: SubmissionEntry) -> dict[str, Any]:
    try:
        value = json.loads(entry.value)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _start(operation: Operation) -> Any:
    def action(_admin: Any, _request: HttpRequest, queryset: QuerySet[SubmissionEntry]) -> HttpResponse:
        ids = ",".join(str(pk) for pk in queryset.values_list("pk", flat=True))
        address = reverse("admin:submissions_submissionentry_operate", args=[operation.name])
        return HttpResponseRedirect(f"{address}?ids={ids}")

    return action
