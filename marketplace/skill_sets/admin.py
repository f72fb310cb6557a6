"""Collections in the admin: made, changed and deleted with a reason; the history of each is on its page."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from marketplace.addresses import collection_href
from marketplace.errors import MarketplaceError
from marketplace.models import Collection, HistoryEvent
from marketplace.skill_sets.editing import (
    MOST_PURPOSE,
    MOST_SKILLS,
    MOST_TITLE,
    SUBJECT_PREFIX,
    Told,
    change_collection,
    create_collection,
    delete_collection,
    read_choices,
    written_choices,
)
from marketplace.skill_sets.reading import summaries
from marketplace.skills.slugs import MAX_SLUG_LENGTH
from vskill.operations_admin import OperationsAdmin, RowOperation
from vskill.worker_context import require_worker_env

_LIST: Final = "admin:marketplace_collection_changelist"
_EVENTS: Final = 50
OPERATIONS: Final = {
    "delete": RowOperation(
        "delete",
        "Delete the collection",
        "Its page and its install lines are gone. Its skills stay as they are, also where they are installed.",
        delete_collection,
    ),
}


class ChangeForm(forms.Form):
    """The form that changes a collection; ``revision`` is that of what it shows."""

    title = forms.CharField(max_length=MOST_TITLE, widget=forms.TextInput(attrs={"size": 60}))
    purpose = forms.CharField(
        max_length=MOST_PURPOSE,
        help_text="One sentence: whom or what it is for.",
        widget=forms.Textarea(attrs={"rows": 2, "cols": 80}),
    )
    skills = forms.CharField(
        required=False,
        max_length=MOST_SKILLS * 500,
        help_text="One skill on each line, in the order in which they are shown. Its name follows the latest version; "
        "name@1.2.0 is pinned to that one. What follows a space is your note, such as: pdf-tools@1.2.0 For contracts.",
        widget=forms.Textarea(attrs={"rows": 12, "cols": 80, "spellcheck": "false"}),
    )
    reason = forms.CharField(
        max_length=1000,
        help_text="It is kept in the history, with your name and the time.",
        widget=forms.Textarea(attrs={"rows": 2, "cols": 80}),
    )
    revision = forms.IntegerField(required=False, widget=forms.HiddenInput)


class AddForm(ChangeForm):
    """The form that makes a collection."""

    slug = forms.CharField(
        max_length=MAX_SLUG_LENGTH,
        help_text="Its name in addresses, such as our-team; it cannot be changed later.",
    )
    field_order = ("title", "slug")


@admin.register(Collection)
class CollectionAdmin(OperationsAdmin):
    """Collections, those that were changed last first."""

    list_display = ("title", "slug", "offered", "changed_at")
    search_fields = ("slug",)
    search_help_text = "The beginning of a slug"
    ordering = ("-changed_at", "-id")
    sortable_by = ()
    actions = tuple(OPERATIONS)
    fields = ("title", "slug", "page", "purpose", "skills", "created_at", "changed_at")
    readonly_fields = fields
    operations = OPERATIONS
    operate_template = "admin/marketplace/operate_collection.html"

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return whether this operator may make collections."""
        user: Any = request.user
        return bool(user.has_perm("marketplace.add_collection"))

    def may_run(self, request: HttpRequest, operation: RowOperation) -> bool:
        """Return whether this operator may delete collections."""
        user: Any = request.user
        return bool(user.has_perm("marketplace.delete_collection"))

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the form that makes a collection, or make it."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = AddForm(request.POST or None)
        if form.is_valid():
            given = form.cleaned_data
            who = {"actor": request.user.get_username(), "reason": given["reason"]}
            try:
                create_collection(require_worker_env(), given["slug"], _told(given), **who)
            except MarketplaceError as refused:
                form.add_error(None, str(refused))
            else:
                return self._done(request, f"{given['title']} was made.")
        return self._page(request, "Make a collection", form)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the form that changes the collection ``object_id``, or change it.

        Where the operator of the ``request`` may not, show what it holds.
        """
        if not self.has_operate_permission(request):
            return super().change_view(request, object_id, form_url, extra_context)
        env, collection = require_worker_env(), self.get_object(request, object_id)
        if collection is None:
            raise Http404
        shown = {
            "title": collection.title,
            "purpose": collection.purpose,
            "skills": written_choices(env, collection),
            "revision": collection.revision,
        }
        form = ChangeForm(request.POST or None, initial=shown)
        if form.is_valid():
            given = form.cleaned_data
            who = {"actor": request.user.get_username(), "reason": given["reason"]}
            try:
                change_collection(env, collection, _told(given), revision=given["revision"] or 0, **who)
            except MarketplaceError as refused:
                form.add_error(None, str(refused))
            else:
                return self._done(request, f"{given['title']} was changed.")
        return self._page(request, "Change the collection", form, collection)

    def _done(self, request: HttpRequest, message: str) -> HttpResponse:
        self.message_user(request, message, messages.SUCCESS)
        return HttpResponseRedirect(reverse(_LIST))

    def _page(
        self, request: HttpRequest, title: str, form: forms.Form, collection: Collection | None = None
    ) -> HttpResponse:
        events = None
        if collection is not None:
            env = require_worker_env()
            subject = f"{SUBJECT_PREFIX}{collection.slug}"
            rows = HistoryEvent.objects.using(env.database).filter(namespace=env.name, subject=subject)
            events = rows.order_by("-id")[:_EVENTS]
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "form": form,
            "collection": collection,
            "href": collection_href(collection.slug) if collection is not None else "",
            "events": events,
            "delete_href": f"{self.operate_address('delete')}?ids={collection.pk}" if collection is not None else "",
            "opts": self.model._meta,
        }
        return TemplateResponse(request, "admin/marketplace/collection.html", context)

    def name_of(self, target: Collection) -> str:
        """Return the slug of a collection."""
        return str(target.slug)

    @admin.display(description="skills offered")
    def offered(self, row: Collection) -> int:
        """Return how many skills it offers to visitors now."""
        return summaries(require_worker_env(), [row])[0].offered

    @admin.display(description="page")
    def page(self, row: Collection) -> SafeString:
        """Return a link to the public page."""
        return format_html('<a href="{0}">{0}</a>', collection_href(row.slug))

    @admin.display(description="skills")
    def skills(self, row: Collection) -> SafeString:
        """Return its skills as its form has them, also those that are withdrawn."""
        return format_html("<pre>{}</pre>", written_choices(require_worker_env(), row))


def _told(given: dict[str, Any]) -> Told:
    return Told(given["title"], given["purpose"], read_choices(given["skills"]))
