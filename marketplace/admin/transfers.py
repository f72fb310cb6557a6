"""Transfers of skills in the admin: what was handed to whom, what is offered, and the way back."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from marketplace.models import SkillTransfer
from marketplace.ownership.transfers import undo
from vskill.environments import WorkerEnv
from vskill.operations_admin import OperationsAdmin, RowOperation
from vskill.read_only_admin import ChoiceFilter


def _undo(env: WorkerEnv, transfer: SkillTransfer, *, actor: str, reason: str) -> None:
    undo(env, transfer.pk, actor=actor, reason=reason)


OPERATIONS: Final = {
    one.name: one
    for one in (
        RowOperation(
            "undo",
            "Hand it back",
            "The skill is listed under its former publisher again, and its updates come from there.",
            _undo,
        ),
    )
}


class StateFilter(ChoiceFilter):
    """Transfers in one state."""

    title = "state"
    parameter_name = "state"
    choices_offered = tuple((one, one) for one in ("offered", "done", "declined", "withdrawn", "lapsed", "undone"))


@admin.register(SkillTransfer)
class TransferAdmin(OperationsAdmin):
    """Skills that were handed or offered to another publisher."""

    list_display = ("created_at", "skill_slug", "from_handle", "to_handle", "state", "decided_by")
    list_filter = (StateFilter,)
    list_select_related = ("skill",)
    ordering = ("-id",)
    sortable_by = ()
    actions = tuple(OPERATIONS)
    fields = (
        *("skill_slug", "from_publisher", "from_repo_url", "from_skill_path", "to_publisher", "to_repo_url"),
        *("to_skill_path", "state", "reason", "offered_by", "created_at", "decided_by", "decided_at"),
    )
    readonly_fields = fields
    operations = OPERATIONS
    operate_template = "admin/marketplace/operate_transfer.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the transfers with their skills."""
        return super().get_queryset(request).select_related("skill")

    def name_of(self, target: Any) -> str:
        """Return the skill of a transfer and whom it went to."""
        return f"{target.skill.slug} to {target.to_handle}"

    @admin.display(description="skill")
    def skill_slug(self, row: SkillTransfer) -> str:
        """Return the name of the skill."""
        return str(row.skill.slug)
