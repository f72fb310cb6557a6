"""The operators' view of skills: everything is shown, and changes are made by named operations with a reason."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from marketplace.models import ALIAS_PREFIX, SKILL_PREFIX, HistoryEvent, SkillEntry, SkillVersion
from marketplace.operations import FOR_MANY, OPERATIONS, Operation, team_operations
from marketplace.pages.wording import VERDICTS
from marketplace.records import Visibility
from marketplace.skills.visibility import light_versions
from marketplace.visitor_reports.reports import open_reports
from vskill.accounts.audiences import MEMBERS
from vskill.accounts.teams import name_of_audience
from vskill.operations_admin import OperationsAdmin
from vskill.read_only_admin import ChoiceFilter, ReadOnlyAdmin, prefix_range, pretty_json
from vskill.worker_context import require_worker_env

Target = tuple[SkillEntry, str]
"""A skill, and the version that an operation is for; empty for an operation on the whole skill."""


_FILTERS = {"visibility", "verdict"}


class VisibilityFilter(ChoiceFilter):
    """Skills with one visibility."""

    title = "visibility"
    parameter_name = "visibility"
    choices_offered = tuple((str(one), str(one)) for one in (*Visibility, MEMBERS))


class VerdictFilter(ChoiceFilter):
    """Skills with one verdict of their latest version."""

    title = "verdict"
    parameter_name = "verdict"
    choices_offered = tuple((key, words.label) for key, words in VERDICTS.items())


class AliasFilter(admin.SimpleListFilter):
    """Aliases, which share the table with skills."""

    title = "entries"
    parameter_name = "entries"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the choice of aliases; skills are the default."""
        return [("aliases", "former names")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return only aliases, or only skills."""
        aliases = prefix_range("key", ALIAS_PREFIX)
        if self.value() is None and (_FILTERS & request.GET.keys() or request.GET.get("q", "").strip().startswith("@")):
            # No alias has any of these; without the condition the rows are counted in an index.
            return queryset
        return queryset.filter(aliases) if self.value() == "aliases" else queryset.exclude(aliases)


@admin.register(SkillEntry)
class SkillAdmin(OperationsAdmin):
    """Skills with their visibility and latest version, and the operations on them."""

    list_display = (
        "shown_slug",
        "publisher_handle",
        "visibility",
        "verdict",
        "latest_version",
        "downloads",
        "changed_at",
    )
    list_display_links = ("shown_slug",)
    list_filter = (VisibilityFilter, VerdictFilter, AliasFilter)
    search_fields = ("key",)
    search_help_text = "The beginning of a slug, of a publisher's name with @, or of a repository's address"
    sortable_by = ("shown_slug",)
    actions = FOR_MANY
    fields = (
        *("key", "page", "display_name", "description", "publisher", "repo_url", "skill_path", "license"),
        *("shown_to", "visibility", "verdict", "latest_version", "downloads", "published_at", "changed_at", "version"),
        "open_reports",
        *("versions_table", "events", "content"),
    )
    readonly_fields = fields

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Return the order that an index gives: by date with a filter that has one, or else by what is searched."""
        if _FILTERS & request.GET.keys():
            return ("-published_at", "-id")
        term = request.GET.get("q", "").strip()
        if term.startswith("@"):
            return ("publisher_handle", "-published_at", "-id")
        return ("repo_url", "-id") if "://" in term else ("key",)

    operations = OPERATIONS
    operate_template = "admin/marketplace/operate.html"

    def operation_named(self, name: str) -> Operation | None:
        """Return an operation, also one that shows skills to a team of this environment."""
        return self.operations.get(name) or team_operations(require_worker_env()).get(name)

    def offered_operations(self) -> list[Any]:
        """Return what the list offers, with one for each team."""
        return [*super().offered_operations(), *team_operations(require_worker_env()).values()]

    def search_condition(self, term: str) -> Q:
        """Return the condition for the prefix of a slug, of ``@`` and a publisher's handle, or of an address."""
        if term.startswith("@"):
            return prefix_range("publisher_handle", term[1:].lower())
        if "://" in term:
            return prefix_range("repo_url", term)
        return prefix_range("key", f"{SKILL_PREFIX}{term.lower()}")

    def targets_of(self, request: HttpRequest, operation: Operation, rows: QuerySet[SkillEntry]) -> list[Target]:
        """Return each skill with the version that ``operation`` is for: the one in the address, or the latest."""
        skills = rows.exclude(prefix_range("key", ALIAS_PREFIX))
        if not operation.on_version:
            return [(row, "") for row in skills]
        wanted = request.GET.get("version", "")
        return [(row, wanted or row.latest_version) for row in skills]

    def name_of(self, target: Target) -> str:
        """Return the slug of a skill."""
        return self.shown_slug(target[0])

    def run_on(self, operation: Operation, target: Target, *, actor: str, reason: str) -> None:
        """Run an operation on one skill or version; ``actor`` and ``reason`` go into the history."""
        operation.run(require_worker_env(), self.name_of(target), target[1], actor=actor, reason=reason)

    @admin.display(description="skill", ordering="key")
    def shown_slug(self, row: SkillEntry) -> str:
        """Return the slug from the key, which is right even where the value is damaged."""
        return str(row.key.removeprefix(SKILL_PREFIX))

    @admin.display(description="shown to")
    def shown_to(self, row: SkillEntry) -> str:
        """Return what people call the audience of a skill."""
        return name_of_audience(require_worker_env(), row.audience) if row.slug else "-"

    @admin.display(description="open reports of visitors")
    def open_reports(self, row: SkillEntry) -> int:
        """Return how many reports of the skill wait for a decision."""
        return open_reports(require_worker_env(), row)

    @admin.display(description="page")
    def page(self, row: SkillEntry) -> str:
        """Return a link to the public page."""
        if not row.slug:
            return "-"
        address = reverse("marketplace:skill", args=[row.slug])
        return format_html('<a href="{}">{}</a>', address, address)

    @admin.display(description="versions")
    def versions_table(self, row: SkillEntry) -> SafeString:
        """Return the versions as a table, with their state and the operations on each."""
        versions = SkillVersion.objects.using(require_worker_env().database).filter(skill=row)
        light = light_versions(versions).order_by("-ordinal")[:200]
        return format_html(
            "<table>{}</table>", format_html_join("", "{}", ((self._version_row(row, one),) for one in light))
        )

    def _version_row(self, row: SkillEntry, version: SkillVersion) -> SafeString:
        marks = [f"yanked: {version.yank_reason}"] if version.yanked_at else []
        marks += [f"quarantined: {version.quarantine_reason}"] if version.quarantined_at else []
        names = (
            "unyank" if version.yanked_at else "yank",
            "restore-version" if version.quarantined_at else "quarantine-version",
            "known-bad",
        )
        links = format_html_join(
            " ",
            '<a href="{}?{}">{}</a>',
            (
                (
                    self.operate_address(name),
                    urlencode({"ids": row.pk, "version": version.version}),
                    "Yank" if name == "yank" else OPERATIONS[name].label,
                )
                for name in names
            ),
        )
        return format_html(
            "<tr><td>{}</td><td>{}</td><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>",
            version.version,
            version.verdict,
            version.commit_sha[:12],
            f"{version.created_at:%Y-%m-%d %H:%M}",
            "; ".join(marks) or "offered",
            links,
        )

    @admin.display(description="history")
    def events(self, row: SkillEntry) -> SafeString:
        """Return the history of the skill, newest event first."""
        events = HistoryEvent.objects.using(require_worker_env().database).filter(skill=row).order_by("-id")[:100]
        return format_html(
            "<ul>{}</ul>",
            format_html_join(
                "",
                "<li>{} UTC, {}: <b>{}</b> {} {}</li>",
                (
                    (f"{one.created_at:%Y-%m-%d %H:%M}", one.actor, one.action, one.version, one.reason)
                    for one in events
                ),
            ),
        )

    @admin.display(description="value")
    def content(self, row: SkillEntry) -> SafeString:
        """Return the value, indented."""
        return pretty_json(row.value)


@admin.register(HistoryEvent)
class HistoryAdmin(ReadOnlyAdmin):
    """The history of skills and of the block list."""

    list_display = ("created_at", "subject", "action", "version", "actor", "reason")
    search_fields = ("subject",)
    search_help_text = "The beginning of a key, such as skill:pdf or blocked:owner:"
    sortable_by = ("subject",)
    ordering = ("-id",)
    fields = ("created_at", "subject", "action", "version", "actor", "reason")
    readonly_fields = fields
