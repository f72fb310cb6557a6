"""Followed repositories in the admin: what was seen of each; begun by a form, ended and looked at by operations."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from marketplace.following import Followed, FollowState
from marketplace.models import FollowedEntry, HistoryEvent
from submissions.following.store import ask_for_look, follow, unfollow
from submissions.following.wish import read_wish
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.codec import decode
from vskill.operations_admin import OperationsAdmin, RowOperation
from vskill.read_only_admin import ChoiceFilter
from vskill.worker_context import require_worker_env

_LIST: Final = "admin:marketplace_followedentry_changelist"
_MOST_EVENTS: Final = 50


def _unfollow(env: WorkerEnv, row: FollowedEntry, *, actor: str, reason: str) -> None:
    unfollow(env, row.repo_url, actor=actor, reason=reason)


def _look(env: WorkerEnv, row: FollowedEntry, *, actor: str, reason: str) -> None:
    ask_for_look(env, row.repo_url, lambda _before, now: now)


OPERATIONS: Final = {
    one.name: one
    for one in (
        RowOperation(
            "unfollow",
            "Follow no longer",
            "New commits are not submitted any more. What was submitted and published stays.",
            _unfollow,
        ),
        RowOperation("look", "Look at it now", "They are looked at in the next run, within a minute.", _look),
    )
}


class FollowForm(forms.Form):
    """The form that begins to follow a repository."""

    address = forms.CharField(max_length=1024, help_text="address of the repository, or owner/name on GitHub")
    branch = forms.CharField(max_length=250, required=False, help_text="empty: its default branch")
    tags = forms.CharField(max_length=100, required=False, help_text="instead of a branch: a pattern, such as v*")
    reason = forms.CharField(max_length=1000, widget=forms.Textarea(attrs={"rows": 3}))


class StateFilter(ChoiceFilter):
    """What the last look came to."""

    title = "state"
    parameter_name = "state"
    choices_offered = tuple((str(state), str(state)) for state in FollowState)


@admin.register(FollowedEntry)
class FollowedAdmin(OperationsAdmin):
    """The followed repositories of an environment."""

    list_display = ("repo_url", "what", "state", "shown_seen", "submitted", "due_at")
    list_filter = (StateFilter,)
    search_fields = ("repo_url",)
    search_help_text = "The beginning of an address, such as https://github.com/owner/"
    ordering = ("repo_url",)
    actions = ("unfollow", "look")
    fields = (
        *("repo_url", "what", "state", "reason", "followed_since", "shown_seen", "submitted", "due_at"),
        *("taken_back", "history"),
    )
    readonly_fields = fields
    operations = OPERATIONS
    operate_template = "admin/submissions/operate_followed.html"
    environment_column: ClassVar[str] = "namespace"

    def name_of(self, target: FollowedEntry) -> str:
        """Return what messages call a followed repository."""
        return target.repo_url

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return whether this operator may begin to follow a repository."""
        user: Any = request.user
        return bool(user.has_perm("marketplace.add_followedentry"))

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the form that begins to follow a repository, or begin it."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = FollowForm(request.POST or None)
        if form.is_valid():
            env, given = require_worker_env(), form.cleaned_data
            try:
                wish = read_wish(env, given["address"], branch=given["branch"], tags=given["tags"])
                actor = request.user.get_username()
                made = follow(
                    env, wish.repo_url, branch=wish.branch, tags=wish.tags, actor=actor, reason=given["reason"]
                )
            except VskillError as error:
                form.add_error(None, str(error))
            else:
                self.message_user(request, f"{made.repo_url} is followed: {made.what}.", messages.SUCCESS)
                return HttpResponseRedirect(reverse(_LIST))
        context = {
            **self.admin_site.each_context(request),
            "title": "Follow a repository",
            "consequence": "Its new commits are submitted by themselves, and checked as any submission is.",
            "form": form,
            "opts": self.opts,
        }
        return TemplateResponse(request, "admin/submissions/follow.html", context)

    @admin.display(description="what")
    def what(self, row: FollowedEntry) -> str:
        """Return what is followed of it."""
        found = _followed(row)
        return found.what if found else "—"

    @admin.display(description="why")
    def reason(self, row: FollowedEntry) -> str:
        """Return what is wrong, in a sentence."""
        found = _followed(row)
        return (found.reason if found else "The entry cannot be read.") or "—"

    @admin.display(description="followed")
    def followed_since(self, row: FollowedEntry) -> str:
        """Return since when it is followed, and by whom."""
        found = _followed(row)
        return f"since {found.since:%Y-%m-%d %H:%M} UTC, by {found.by}" if found else "—"

    @admin.display(description="last seen")
    def shown_seen(self, row: FollowedEntry) -> str:
        """Return when it answered last."""
        found = _followed(row)
        return f"{found.seen_at:%Y-%m-%d %H:%M} UTC" if found and found.seen_at else "not yet"

    @admin.display(description="last submitted")
    def submitted(self, row: FollowedEntry) -> str:
        """Return which commit was submitted last, and what waits."""
        found = _followed(row)
        if found is None:
            return "—"
        waits = " A newer one waits for a submission that is on its way." if found.left and found.waits else ""
        if found.submitted_at is None:
            return f"nothing yet.{waits}" if waits else "nothing yet"
        return f"{found.commit_sha[:12]} on {found.submitted_at:%Y-%m-%d %H:%M} UTC.{waits}"

    @admin.display(description="taken back")
    def taken_back(self, row: FollowedEntry) -> SafeString:
        """Return the force-pushes and deletions that were seen."""
        found = _followed(row)
        told = [(f"{one.at:%Y-%m-%d}", one.words) for one in found.told] if found else []
        return format_html_join("", "<p>{}: {}</p>", told) or SafeString("nothing that was seen")

    @admin.display(description="history")
    def history(self, row: FollowedEntry) -> SafeString:
        """Return what was done to it, by whom and why."""
        env = require_worker_env()
        events = HistoryEvent.objects.using(env.database).filter(namespace=env.name, subject=row.key)
        lines = [
            (f"{one.created_at:%Y-%m-%d %H:%M}", one.action, one.actor, one.reason)
            for one in events.order_by("-id")[:_MOST_EVENTS]
        ]
        return format_html_join("", "<p>{} {} by {}: {}</p>", lines)


def _followed(row: FollowedEntry) -> Followed | None:
    try:
        return Followed.from_value(decode(row.value))
    except ValueError:
        return None
