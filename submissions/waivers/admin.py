"""Waivers in the admin: the newest first, ended before their time with a reason."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from submissions.models import Waiver
from submissions.presentation import submission_path
from submissions.waivers.store import revoke
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now
from vskill.operations_admin import OperationsAdmin, RowOperation
from vskill.read_only_admin import ChoiceFilter
from vskill.worker_context import require_worker_env


def _revoke(env: WorkerEnv, waiver: Waiver, *, actor: str, reason: str) -> None:
    revoke(env, waiver.pk, actor=actor, reason=reason)


OPERATIONS: Final = {
    "end": RowOperation(
        "end",
        "End the waiver",
        "Later versions of the skill are held for the finding again. What is published by it stays, is scanned again "
        "at once, and is flagged where the finding would hold it.",
        _revoke,
    )
}


class OpenFilter(ChoiceFilter):
    """Whether a waiver still counts."""

    title = "state"
    parameter_name = "state"
    choices_offered = (("open", "counts now"), ("ended", "ended or lapsed"))

    def condition(self, choice: str) -> Q | None:
        """Return the condition of a choice."""
        now = database_now(require_worker_env().database)
        counts = Q(ended_at__isnull=True, expires_at__gt=now)
        return {"open": counts, "ended": ~counts}.get(choice)


@admin.register(Waiver)
class WaiverAdmin(OperationsAdmin):
    """The waivers of an environment."""

    list_display = ("title", "skill_name", "shown_state", "shown_until", "owner", "shown_place")
    list_filter = (OpenFilter,)
    search_fields = ("skill_name",)
    search_help_text = "The exact name of a skill"
    ordering = ("-id",)
    actions = ("end",)
    fields = (
        *("skill_name", "title", "rule_id", "engine", "shown_place", "shown_scope", "reason", "owner"),
        *("created_by", "created_at", "shown_until", "shown_state", "ended_reason", "shown_submission", "fingerprint"),
    )
    readonly_fields = fields
    operations = OPERATIONS
    operate_template = "admin/submissions/operate_waiver.html"
    environment_column: ClassVar[str] = "namespace"

    def search_condition(self, term: str) -> Q:
        """Return the condition for the exact name of a skill."""
        return Q(skill_name=term)

    def name_of(self, target: Waiver) -> str:
        """Return what messages call a waiver."""
        return str(target)

    def may_run(self, request: HttpRequest, operation: Any) -> bool:
        """Return whether this operator may end waivers."""
        user: Any = request.user
        return bool(user.has_perm("submissions.delete_waiver"))

    @admin.display(description="place")
    def shown_place(self, row: Waiver) -> str:
        """Return the file and the line of the finding when it was waived."""
        return f"{row.file}:{row.line}" if row.line else row.file

    @admin.display(description="until")
    def shown_until(self, row: Waiver) -> str:
        """Return the last day on which it counts."""
        return f"{row.expires_at:%Y-%m-%d}"

    @admin.display(description="counts while")
    def shown_scope(self, row: Waiver) -> str:
        """Return what must stay as it is."""
        return "the lines around it are unchanged" if row.scope == "passage" else "the whole file is unchanged"

    @admin.display(description="state")
    def shown_state(self, row: Waiver) -> str:
        """Return whether it counts, or since when and by whom it is ended."""
        if row.ended_at is not None:
            return f"ended {row.ended_at:%Y-%m-%d} by {row.ended_by}"
        lapsed = row.expires_at <= database_now(require_worker_env().database)
        return "lapsed" if lapsed else "counts now"

    @admin.display(description="granted for")
    def shown_submission(self, row: Waiver) -> SafeString:
        """Return a link to the page of its submission."""
        return format_html('<a href="{}">{}</a>', submission_path(row.submission_id), row.submission_id)
