"""Flags in the admin: the newest first, taken off or followed by a quarantine, each with a reason."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from marketplace.flags import FlagKind, clear
from marketplace.models import LaterScan, SkillFlag
from marketplace.skills.moderation import quarantine_version
from vskill.environments import WorkerEnv
from vskill.kv.codec import encode
from vskill.operations_admin import OperationsAdmin, RowOperation
from vskill.read_only_admin import ChoiceFilter, pretty_json


def _clear(env: WorkerEnv, flag: SkillFlag, *, actor: str, reason: str) -> None:
    slug, number = flag.skill.slug, flag.version.version
    clear(env, slug, FlagKind(flag.kind), version=number, actor=actor, reason=reason)
    if flag.kind == FlagKind.VERDICT:
        # Engines of a later version that say the same do not flag it again.
        later = LaterScan.objects.using(env.database).filter(version=flag.version_id)
        later.update(accepted_verdict=F("verdict"))


def _quarantine(env: WorkerEnv, flag: SkillFlag, *, actor: str, reason: str) -> None:
    quarantine_version(env, flag.skill.slug, flag.version.version, actor=actor, reason=reason)


OPERATIONS: Final = {
    one.name: one
    for one in (
        RowOperation(
            "clear",
            "Take off the flag",
            "Nobody is warned of it any more, until something else flags it.",
            _clear,
        ),
        RowOperation(
            "quarantine",
            "Quarantine the version",
            "Nobody can fetch the version any more; the other versions stay. The flag stays, too.",
            _quarantine,
        ),
    )
}


class FlagKindFilter(ChoiceFilter):
    """Flags of one kind."""

    title = "kind"
    parameter_name = "kind"
    choices_offered = tuple((str(one), str(one)) for one in FlagKind)


@admin.register(SkillFlag)
class FlagAdmin(OperationsAdmin):
    """The flagged versions of published skills."""

    list_display = ("created_at", "shown_skill", "shown_version", "kind", "reason", "actor")
    list_filter = (FlagKindFilter,)
    list_select_related = ("skill", "version")
    ordering = ("-id",)
    actions = ("clear", "quarantine")
    fields = ("created_at", "shown_skill", "shown_version", "kind", "reason", "actor", "shown_details")
    readonly_fields = fields
    operations = OPERATIONS
    operate_template = "admin/marketplace/operate_flag.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the flags with their skills, and without the texts of their versions."""
        rows = super().get_queryset(request).select_related("skill", "version")
        return rows.defer("version__skill_md", "version__findings", "version__manifest", "version__contract")

    def name_of(self, target: SkillFlag) -> str:
        """Return the slug and version of a flag."""
        return f"{target.skill.slug} {target.version.version}"

    @admin.display(description="skill")
    def shown_skill(self, row: SkillFlag) -> SafeString:
        """Return a link to the skill in the admin."""
        address = reverse("admin:marketplace_skillentry_change", args=[row.skill_id])
        return format_html('<a href="{}">{}</a>', address, row.skill.slug)

    @admin.display(description="version")
    def shown_version(self, row: SkillFlag) -> str:
        """Return the number of the flagged version."""
        return row.version.version

    @admin.display(description="details")
    def shown_details(self, row: SkillFlag) -> SafeString:
        """Return the details, indented."""
        return pretty_json(encode(row.details))
