"""The review queue in the admin: the list, the page of one submission, its decisions, the accuracy of rules."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince

from submissions.models import HeldSubmission
from submissions.review.accuracy import accuracies, bars
from submissions.review.decide import decide
from submissions.review.filters import EngineFilter, OwnerFilter, RuleFilter, VerdictFilter
from submissions.review.page import review_context
from submissions.review.queue import FILTERS, ORDER, count_left, following, in_review, query_of
from submissions.review.undo import undo
from submissions.review.waive import CHOICES, WAIVE, waive_posted
from submissions.review_rank import strength_words
from submissions.states import STATES, State
from submissions.waivers.store import InvalidWaiver
from vskill.errors import VskillError
from vskill.hidden_characters import reveal_hidden
from vskill.read_only_admin import ReadOnlyAdmin
from vskill.worker_context import require_worker_env

_LIST: Final = "admin:submissions_heldsubmission_changelist"
_PAGE: Final = "admin:submissions_heldsubmission_change"
_LAST: Final = "vskill_last_decision"
_LONGEST_REASON: Final = 1000


@admin.register(HeldSubmission)
class ReviewAdmin(ReadOnlyAdmin):
    """What waits for a reviewer, strongest first; each has a page on which it is decided."""

    list_display = ("skill", "verdict", "signs", "owner", "age")
    list_display_links = None
    list_filter = (VerdictFilter, RuleFilter, EngineFilter, OwnerFilter)
    search_fields = ("key",)
    ordering = ORDER
    change_list_template = "admin/submissions/review_list.html"
    environment_column: ClassVar[str] = "namespace"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return what waits for a reviewer in the current environment."""
        return in_review(require_worker_env()).order_by(*ORDER)

    def search_condition(self, term: str) -> Q:
        """Return the condition for the exact name of a skill."""
        return Q(skill_name=term)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether this operator may see submissions."""
        user: Any = request.user
        return any(user.has_perm(f"submissions.{one}_submissionentry") for one in ("view", "change"))

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Return whether this operator may see submissions."""
        return self.has_view_permission(request)

    def may_decide(self, request: HttpRequest) -> bool:
        """Return whether this operator may decide about submissions, as everywhere in the admin."""
        user: Any = request.user
        return bool(user.has_perm("submissions.change_submissionentry"))

    def get_urls(self) -> list[URLPattern]:
        """Add the page of the rules, and the undo."""
        view = self.admin_site.admin_view
        return [
            path("rules/", view(self.rules), name="submissions_heldsubmission_rules"),
            path("<int:pk>/undo/", view(self.undo), name="submissions_heldsubmission_undo"),
            *super().get_urls(),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the queue, with the last decision and its undo."""
        return super().changelist_view(
            request, {**(extra_context or {}), **self._last(request), "title": "Review queue"}
        )

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the review page of the submission ``object_id``, or take the decision in ``request`` and open the next.

        ``form_url`` and ``extra_context`` are Django's and not used.
        """
        if not self.has_view_permission(request):
            raise PermissionDenied
        env = require_worker_env()
        entries = HeldSubmission._default_manager.using(env.database).filter(namespace=env.name)
        entry = entries.filter(pk=object_id).first() if object_id.isdecimal() and len(object_id) < 19 else None
        if entry is None:
            self.message_user(request, "There is no such submission here.", messages.WARNING)
            return HttpResponseRedirect(reverse("admin:index"))
        chosen = {name: request.GET.get(name, "") for name in FILTERS}
        if request.method == "POST":
            return self._decide(request, entry, chosen)
        if entry.review_rank is None or entry.state not in (State.ON_HOLD, State.REJECTED):
            label = STATES[State(entry.state)].label if entry.state in State.__members__ else "unreadable"
            self.message_user(request, f"{_name(entry)} is no longer to be reviewed: {label}.", messages.WARNING)
            return self._next(env, entry, chosen)
        return self._page(request, entry, chosen)

    def _page(
        self, request: HttpRequest, entry: HeldSubmission, chosen: dict[str, str], *, problem: str = ""
    ) -> HttpResponse:
        user: Any = request.user
        context = {
            **self.admin_site.each_context(request),
            **review_context(require_worker_env(), entry, chosen),
            **self._last(request),
            "title": f"Review {_name(entry)}",
            "opts": self.opts,
            "name": _name(entry),
            "may_decide": self.may_decide(request),
            "may_block": user.has_perm("marketplace.add_blockentry"),
            "may_remember": user.has_perm("marketplace.add_knownbad"),
            "may_waive": self.may_decide(request) and user.has_perm(WAIVE.permission),
            "actor": _actor(request),
            "problem": problem,
            "posted": request.POST,
            "ticked": request.POST.getlist("waive"),
        }
        return TemplateResponse(request, "admin/submissions/review.html", context)

    def _decide(self, request: HttpRequest, entry: HeldSubmission, chosen: dict[str, str]) -> HttpResponse:
        user: Any = request.user
        decision = CHOICES.get(request.POST.get("decision", ""))
        if decision is None:
            raise Http404
        if not self.may_decide(request) or (decision.permission and not user.has_perm(decision.permission)):
            raise PermissionDenied
        reason = reveal_hidden(request.POST.get("reason", "").replace("\0", "").strip())[:_LONGEST_REASON]
        if not reason:
            problem = "Give a reason: it is kept in the history, and the submitter sees it."
            return self._page(request, entry, chosen, problem=problem)
        seen = request.POST.get("seen", "")
        version = int(seen) if seen.isdecimal() and len(seen) < 19 else 0
        env, actor = require_worker_env(), _actor(request)
        try:
            if decision is WAIVE:
                waive_posted(env, entry.submission_id, request.POST, actor=actor, reason=reason, seen=version)
            else:
                decide(env, entry.submission_id, decision, actor=actor, reason=reason, seen=version)
        except InvalidWaiver as error:
            return self._page(request, entry, chosen, problem=str(error))
        except (VskillError, DatabaseError) as error:
            self.message_user(request, f"{_name(entry)}: {error}", messages.ERROR)
        else:
            self.message_user(request, f"{_name(entry)}: {decision.done}.", messages.SUCCESS)
            # A waiver is ended where waivers are, and not undone.
            if decision is not WAIVE:
                request.session[_LAST] = {"pk": entry.pk, "name": _name(entry), "done": decision.done}
        return self._next(env, entry, chosen)

    def _next(self, env: Any, entry: HeldSubmission, chosen: dict[str, str]) -> HttpResponse:
        after = following(env, entry, chosen)
        address = reverse(_PAGE, args=[after.pk]) if after is not None else reverse(_LIST)
        return HttpResponseRedirect(f"{address}{query_of(chosen)}")

    def undo(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Take back this operator's last decision and open its submission again, or say what to do instead."""
        if not self.may_decide(request):
            raise PermissionDenied
        env = require_worker_env()
        last = request.session.get(_LAST)
        if request.method != "POST" or not isinstance(last, dict) or last.get("pk") != pk:
            return HttpResponseRedirect(reverse(_LIST))
        entry = HeldSubmission._default_manager.using(env.database).filter(namespace=env.name, pk=pk).first()
        if entry is None:
            raise Http404
        del request.session[_LAST]
        try:
            undo(env, entry.submission_id, actor=_actor(request), reason=f"Undone by the reviewer: {last['done']}.")
        except (VskillError, DatabaseError) as error:
            self.message_user(request, f"{_name(entry)}: {error}", messages.ERROR)
            return HttpResponseRedirect(reverse(_LIST))
        self.message_user(request, f"{_name(entry)} is held again.", messages.SUCCESS)
        return HttpResponseRedirect(reverse(_PAGE, args=[pk]))

    def rules(self, request: HttpRequest) -> HttpResponse:
        """Show how often reviewers overturned what each rule held."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        shown = accuracies(require_worker_env())
        context = {
            **self.admin_site.each_context(request),
            "title": "Accuracy of rules",
            "opts": self.opts,
            "rules": shown,
            "chart": bars(shown),
        }
        return TemplateResponse(request, "admin/submissions/rules.html", context)

    def _last(self, request: HttpRequest) -> dict[str, Any]:
        last = request.session.get(_LAST)
        shown = last if isinstance(last, dict) and self.may_decide(request) else None
        chosen = {name: request.GET.get(name, "") for name in FILTERS}
        return {"last_decision": shown, "left": count_left(require_worker_env(), chosen)}

    @admin.display(description="skill")
    def skill(self, entry: HeldSubmission) -> SafeString:
        """Return a link to the review page."""
        return format_html('<a href="{}">{}</a>', reverse(_PAGE, args=[entry.pk]), _name(entry))

    @admin.display(description="strength")
    def signs(self, entry: HeldSubmission) -> str:
        """Return its rank in words: the severity, how many engines agree, an appeal."""
        return strength_words(entry.review_rank or 0)

    @admin.display(description="owner")
    def owner(self, entry: HeldSubmission) -> str:
        """Return the owner of its repository."""
        return str(entry.repo_url).partition("://")[2].rpartition("/")[0]

    @admin.display(description="waits since")
    def age(self, entry: HeldSubmission) -> str:
        """Return how long ago it was submitted."""
        return f"{timesince(entry.submitted_at, depth=1)} ago" if entry.submitted_at is not None else "unknown"


def _name(entry: HeldSubmission) -> str:
    return entry.skill_name or entry.submission_id


def _actor(request: HttpRequest) -> str:
    return request.user.get_username()
