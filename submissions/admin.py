"""The operators' view of submissions: everything is shown, and changes are made by named operations."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.contrib import admin
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.timesince import timesince

from submissions.external_scans.operation import ASK_OUTSIDE
from submissions.following.admin import FollowedAdmin
from submissions.models import SubmissionEntry
from submissions.notifications.admin import DeliveryAdmin, SubscriptionAdmin
from submissions.operations import OPERATIONS, Operation
from submissions.presentation import submission_path, timeline
from submissions.queue.admin import QueueMessageAdmin, RecoverySweepAdmin
from submissions.review.admin import ReviewAdmin
from submissions.states import STATES, State
from submissions.store.queries import history, stuck_condition
from submissions.uploads.admin import UploadAdmin
from submissions.waivers.admin import WaiverAdmin
from vskill.kv.clock import database_now
from vskill.operations_admin import OperationsAdmin
from vskill.read_only_admin import ChoiceFilter, prefix_range, pretty_json
from vskill.worker_context import require_worker_env

__all__ = [
    "DeliveryAdmin",
    "FollowedAdmin",
    "QueueMessageAdmin",
    "RecoverySweepAdmin",
    "ReviewAdmin",
    "SubmissionAdmin",
    "SubscriptionAdmin",
    "UploadAdmin",
    "WaiverAdmin",
]


class StuckFilter(ChoiceFilter):
    """Submissions that have not moved for longer than the threshold, and whose message is gone."""

    title = "movement"
    parameter_name = "movement"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the one choice, with the threshold in its label."""
        return [("stuck", f"stuck: not moved for {settings.STUCK_THRESHOLD_SECONDS / 60:g} minutes, no message")]

    def condition(self, choice: str) -> Q | None:
        """Return the condition of what ``recover_stuck`` would move."""
        return _stuck() if choice == "stuck" else None


def _stuck() -> Q:
    env = require_worker_env()
    older_than = timedelta(seconds=settings.STUCK_THRESHOLD_SECONDS)
    return stuck_condition(env, database_now(env.database), older_than=older_than)


class StateFilter(ChoiceFilter):
    """Submissions in one state, found by the index over states."""

    title = "state"
    parameter_name = "state"
    choices_offered = tuple((str(state), f"{info.label} ({state})") for state, info in STATES.items())


@admin.register(SubmissionEntry)
class SubmissionAdmin(OperationsAdmin):
    """Submissions with their state, reason and age, and the operations on them."""

    list_display = ("skill", "state_label", "age", "verdict", "source")
    list_display_links = ("skill",)
    list_filter = (StateFilter, StuckFilter)
    search_fields = ("key",)
    search_help_text = "The start of a submission id (sub_…), of a repository address, or a skill's exact name"
    ordering = ("-submitted_at",)
    sortable_by = ("skill", "source")
    actions = (*OPERATIONS, ASK_OUTSIDE.name)
    fields = ("skill", "state_label", "reason", "age", "page", "steps", "key", "version", "content")
    readonly_fields = fields

    operations: ClassVar[dict[str, Operation]] = {**OPERATIONS, ASK_OUTSIDE.name: ASK_OUTSIDE}
    operate_template = "admin/submissions/operate.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the submissions, each with ``is_stuck``."""
        rows: QuerySet[Any] = super().get_queryset(request)
        marked: QuerySet[Any] = rows.annotate(is_stuck=ExpressionWrapper(_stuck(), BooleanField()))
        return marked

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Return the order that an index gives: the newest first, or those of the addresses that are searched."""
        term = request.GET.get("q", "").strip()
        if term.startswith("sub_"):
            return ("key",)
        return ("repo_url", "-submitted_at") if "/" in term or "." in term else ("-submitted_at",)

    def search_condition(self, term: str) -> Q:
        """Return the condition for the prefix of an id or address, or for the exact name of a skill."""
        if term.startswith("sub_"):
            return prefix_range("key", f"sub:{term}")
        if "/" in term or "." in term:
            return prefix_range("repo_url", term if "://" in term else f"https://{term}")
        return Q(skill_name=term)

    def may_run(self, request: HttpRequest, operation: Operation) -> bool:
        """Return whether this operator has the permission that ``operation`` needs besides the common one."""
        user: Any = request.user
        return not operation.permission or bool(user.has_perm(operation.permission))

    def name_of(self, target: SubmissionEntry) -> str:
        """Return the name of a submission's skill, or its id."""
        return target.skill_name or target.submission_id

    def run_on(self, operation: Operation, target: SubmissionEntry, *, actor: str, reason: str) -> None:
        """Run an operation on one submission; ``actor`` and ``reason`` go into its history."""
        operation.run(require_worker_env(), target.submission_id, actor=actor, reason=reason)

    @admin.display(description="skill", ordering="skill_name")
    def skill(self, entry: SubmissionEntry) -> str:
        """Return the name of the skill, or the id of the submission."""
        return self.name_of(entry)

    @admin.display(description="state", ordering="state")
    def state_label(self, entry: SubmissionEntry) -> str:
        """Return the state in words; an unknown state is shown as unreadable."""
        info = STATES.get(State(entry.state)) if entry.state in State.__members__ else None
        return info.label if info is not None else "unreadable"

    @admin.display(description="last move", ordering="state_at")
    def age(self, entry: SubmissionEntry) -> str:
        """Return the time since the last transition, with a mark on a submission that ``recover_stuck`` would move."""
        if entry.state_at is None:
            return "unknown"
        mark = " (stuck)" if getattr(entry, "is_stuck", False) else ""
        return f"{timesince(entry.state_at, depth=1)} ago{mark}"

    @admin.display(description="source", ordering="repo_url")
    def source(self, entry: SubmissionEntry) -> str:
        """Return the URL of the repository and the folder in it."""
        return f"{entry.repo_url} {entry.skill_path}".strip()

    @admin.display(description="reason")
    def reason(self, entry: SubmissionEntry) -> str:
        """Return the reason for the present state."""
        return str(_value(entry).get("reason", "")) or "-"

    @admin.display(description="page")
    def page(self, entry: SubmissionEntry) -> SafeString:
        """Return a link to the page that the submitter sees, which has the findings."""
        address = submission_path(entry.submission_id)
        return format_html('<a href="{}">{}</a>', address, address)

    @admin.display(description="what happened")
    def steps(self, entry: SubmissionEntry) -> SafeString:
        """Return the transitions as a table."""
        rows = timeline(history(require_worker_env(), entry.submission_id))
        return mark_safe(render_to_string("admin/submissions/steps.html", {"steps": rows}))  # noqa: S308 - a template escapes

    @admin.display(description="value")
    def content(self, entry: SubmissionEntry) -> SafeString:
        """Return the value, indented."""
        return pretty_json(entry.value)


def _value(entry: SubmissionEntry) -> dict[str, Any]:
    try:
        value = json.loads(entry.value)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
