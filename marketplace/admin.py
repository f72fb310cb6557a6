"""The operators' view of skills: everything is shown, and changed only by named operations with a reason."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from marketplace.block_admin import BlockAdmin
from marketplace.models import ALIAS_PREFIX, SKILL_PREFIX, HistoryEvent, SkillEntry, SkillVersion
from marketplace.operations import FOR_MANY, OPERATIONS, Operation
from marketplace.pages.wording import VERDICTS
from marketplace.records import Visibility
from vskill.errors import VskillError
from vskill.kv.admin import BoundedPaginator, pretty_value
from vskill.read_only_admin import ReadOnlyAdmin, prefix_range, row_numbers
from vskill.worker_context import require_worker_env

__all__ = ["BlockAdmin", "HistoryAdmin", "SkillAdmin"]

_LIST = "admin:marketplace_skillentry_changelist"
_OPERATE = "admin:marketplace_skillentry_operate"


class _ColumnFilter(admin.SimpleListFilter):
    """One value of an indexed column."""

    choices_offered: tuple[tuple[str, str], ...] = ()

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer the values that the column can have."""
        return list(self.choices_offered)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Cut the list down."""
        return queryset.filter(**{str(self.parameter_name): self.value()}) if self.value() else queryset


class VisibilityFilter(_ColumnFilter):
    """Whether a skill is shown."""

    title = "visibility"
    parameter_name = "visibility"
    choices_offered = tuple((str(one), str(one)) for one in Visibility)


class VerdictFilter(_ColumnFilter):
    """The verdict of the latest version."""

    title = "verdict"
    parameter_name = "verdict"
    choices_offered = tuple((key, words.label) for key, words in VERDICTS.items())


class AliasFilter(admin.SimpleListFilter):
    """Former names, which are entries too."""

    title = "entries"
    parameter_name = "entries"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer the former names."""
        return [("aliases", "former names")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Show former names alone, or skills alone."""
        aliases = prefix_range("key", ALIAS_PREFIX)
        return queryset.filter(aliases) if self.value() == "aliases" else queryset.exclude(aliases)


@admin.register(SkillEntry)
class SkillAdmin(ReadOnlyAdmin):
    """Skills: whether they are shown, their latest version, and what an operator can do."""

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
    # The newest by number, which every index of the table can walk without sorting.
    ordering = ("-id",)
    paginator = BoundedPaginator
    actions = FOR_MANY
    fields = (
        *("key", "page", "display_name", "description", "publisher", "repo_url", "skill_path", "license"),
        *("visibility", "verdict", "latest_version", "downloads", "published_at", "changed_at", "version"),
        *("versions_table", "events", "content"),
    )
    readonly_fields = fields

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search by ranges that the indexes answer."""
        term = search_term.strip().replace("\0", "")
        if not term:
            return queryset, False
        if term.startswith("@"):
            return queryset.filter(prefix_range("publisher_handle", term[1:].lower())), False
        if "://" in term:
            return queryset.filter(prefix_range("repo_url", term)), False
        return queryset.filter(prefix_range("key", f"{SKILL_PREFIX}{term.lower()}")), False

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Tell whether this operator may withdraw and restore: the permission to change skills."""
        user: Any = request.user
        return bool(user.has_perm("marketplace.change_skillentry"))

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Offer the operations to those who may use them."""
        if not self.has_operate_permission(request):
            return {}
        return {name: (_start(OPERATIONS[name]), name, OPERATIONS[name].label) for name in FOR_MANY}

    def get_urls(self) -> list[URLPattern]:
        """Add the confirmation page."""
        operate = path(
            "operate/<str:name>/", self.admin_site.admin_view(self.operate), name="marketplace_skillentry_operate"
        )
        return [operate, *super().get_urls()]

    def operate(self, request: HttpRequest, name: str) -> HttpResponse:
        """Ask for the reason and a confirmation, then do it: each skill by itself."""
        if not self.has_operate_permission(request):
            raise PermissionDenied
        operation = OPERATIONS.get(name)
        if operation is None:
            raise Http404
        ids = row_numbers(request.GET.get("ids", ""))[:1000]
        rows = self.get_queryset(request).filter(pk__in=ids).exclude(prefix_range("key", ALIAS_PREFIX))
        wanted = request.GET.get("version", "") if operation.on_version else ""
        targets = [(row, wanted or (row.latest_version if operation.on_version else "")) for row in rows]
        reason = request.POST.get("reason", "").strip()
        if request.method == "POST" and reason:
            self._run(request, operation, targets, reason)
            return HttpResponseRedirect(reverse(_LIST))
        context = {
            **self.admin_site.each_context(request),
            "title": operation.label,
            "operation": operation,
            "targets": targets,
            "missing_reason": request.method == "POST",
            "opts": self.model._meta,
        }
        return TemplateResponse(request, "admin/marketplace/operate.html", context)

    def _run(
        self, request: HttpRequest, operation: Operation, targets: list[tuple[SkillEntry, str]], reason: str
    ) -> None:
        env, actor = require_worker_env(), request.user.get_username()
        done = 0
        for row, version in targets:
            slug = row.key.removeprefix(SKILL_PREFIX)
            try:
                operation.run(env, slug, version, actor=actor, reason=reason)
                done += 1
            except (VskillError, DatabaseError) as error:
                self.message_user(request, f"{slug}: {error}", messages.ERROR)
        if done:
            self.message_user(request, f"{operation.label}: {done} of {len(targets)} done.", messages.SUCCESS)

    @admin.display(description="skill", ordering="key")
    def shown_slug(self, row: SkillEntry) -> str:
        """Return the slug, which the key has even where the value is damaged."""
        return str(row.key.removeprefix(SKILL_PREFIX))

    @admin.display(description="page")
    def page(self, row: SkillEntry) -> str:
        """Return a link to what everybody sees."""
        if not row.slug:
            return "-"
        address = reverse("marketplace:skill", args=[row.slug])
        return format_html('<a href="{}">{}</a>', address, address)

    @admin.display(description="versions")
    def versions_table(self, row: SkillEntry) -> SafeString:
        """Return the versions with their marks, and what can be done with each."""
        versions = SkillVersion.objects.using(require_worker_env().database).filter(skill=row)
        light = versions.defer("skill_md", "findings", "manifest").order_by("-ordinal")[:200]
        return format_html(
            "<table>{}</table>", format_html_join("", "{}", ((_version_row(row, one),) for one in light))
        )

    @admin.display(description="history")
    def events(self, row: SkillEntry) -> SafeString:
        """Return what was done to the skill, the newest first."""
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
        return pretty_value(row.value)


@admin.register(HistoryEvent)
class HistoryAdmin(ReadOnlyAdmin):
    """Everything that was done to skills and to the block list."""

    list_display = ("created_at", "subject", "action", "version", "actor", "reason")
    search_fields = ("subject",)
    search_help_text = "The beginning of a key, such as skill:pdf or blocked:owner:"
    ordering = ("-id",)
    paginator = BoundedPaginator
    fields = ("created_at", "subject", "action", "version", "actor", "reason")
    readonly_fields = fields

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search by a range of subjects, which the index answers."""
        term = search_term.strip().replace("\0", "")
        return (queryset.filter(prefix_range("subject", term)) if term else queryset), False


def _version_row(row: SkillEntry, version: SkillVersion) -> SafeString:
    marks = [f"yanked: {version.yank_reason}"] if version.yanked_at else []
    marks += [f"quarantined: {version.quarantine_reason}"] if version.quarantined_at else []
    names = (
        "unyank" if version.yanked_at else "yank",
        "restore-version" if version.quarantined_at else "quarantine-version",
    )
    links = format_html_join(
        " ",
        '<a href="{}?{}">{}</a>',
        (
            (
                reverse(_OPERATE, args=[name]),
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


def _start(operation: Operation) -> Any:
    def action(_admin: Any, _request: HttpRequest, queryset: QuerySet[SkillEntry]) -> HttpResponse:
        ids = ",".join(str(pk) for pk in queryset.values_list("pk", flat=True))
        return HttpResponseRedirect(f"{reverse(_OPERATE, args=[operation.name])}?{urlencode({'ids': ids})}")

    return action
