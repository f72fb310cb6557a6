"""The block list in the admin: listed like other entries; entries are added and removed with a reason."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from marketplace.models import BlockEntry
from marketplace.skills.blocklist import PREFIX, Block, BlockKind, InvalidBlock, add_block, block_of, remove_block
from marketplace.skills.publishers import full_address
from vskill.entry_admin import KVEntryAdmin
from vskill.kv.codec import decode
from vskill.read_only_admin import prefix_range
from vskill.worker_context import require_worker_env

_LIST = "admin:marketplace_blockentry_changelist"


class BlockForm(forms.Form):
    """The form that adds an entry."""

    kind = forms.ChoiceField(choices=[(str(kind), str(kind)) for kind in BlockKind])
    value = forms.CharField(
        max_length=1024,
        help_text="a repository's address or owner/name on GitHub, host/owner, or a content hash",
    )
    reason = forms.CharField(max_length=1000, widget=forms.Textarea(attrs={"rows": 3}))


class ReasonForm(forms.Form):
    """The form that removes an entry."""

    reason = forms.CharField(max_length=1000, widget=forms.Textarea(attrs={"rows": 3}))


@admin.register(BlockEntry)
class BlockAdmin(KVEntryAdmin):
    """Entries of the block list."""

    list_display = ["kind", "value_shown", "reason", "actor", "updated_at"]
    list_display_links = ("value_shown",)
    list_filter: ClassVar[tuple[type[admin.SimpleListFilter], ...]] = ()
    search_help_text = "The beginning of a key, such as blocked:owner:github.com/"
    actions = ("take_off",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the entries of the block list."""
        return super().get_queryset(request).filter(prefix_range("key", PREFIX))

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return whether this operator may add entries."""
        user: Any = request.user
        return bool(user.has_perm("marketplace.add_blockentry"))

    def has_remove_permission(self, request: HttpRequest) -> bool:
        """Return whether this operator may remove entries."""
        user: Any = request.user
        return bool(user.has_perm("marketplace.delete_blockentry"))

    def get_urls(self) -> list[URLPattern]:
        """Add the page that removes an entry."""
        remove = path("<int:pk>/remove/", self.admin_site.admin_view(self.remove), name="marketplace_blockentry_remove")
        return [remove, *super().get_urls()]

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the form that adds an entry, or add it."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = BlockForm(request.POST or None)
        if form.is_valid():
            kind, value, reason = (form.cleaned_data[name] for name in ("kind", "value", "reason"))
            value = full_address(value) if kind == BlockKind.REPO else value
            try:
                block = add_block(require_worker_env(), BlockKind(kind), value, actor=_actor(request), reason=reason)
            except InvalidBlock as error:
                form.add_error("value", str(error))
            else:
                self.message_user(request, str(block), messages.SUCCESS)
                return HttpResponseRedirect(reverse(_LIST))
        consequence = "What is blocked is published no more. What is published already stays: quarantine it as well."
        return self._page(request, "Block", consequence, form)

    def remove(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Show the form that removes the entry with the primary key ``pk``, or remove it."""
        if not self.has_remove_permission(request):
            raise PermissionDenied
        entry = self.get_queryset(request).filter(pk=pk).first()
        if entry is None:
            raise Http404
        block = _block(entry)
        form = ReasonForm(request.POST or None)
        if form.is_valid():
            reason = form.cleaned_data["reason"]
            remove_block(require_worker_env(), block.kind, block.value, actor=_actor(request), reason=reason)
            self.message_user(request, f"{block.kind} {block.value} is no longer blocked.", messages.SUCCESS)
            return HttpResponseRedirect(reverse(_LIST))
        return self._page(request, "Take off the block list", f"{block}. It can be submitted again afterwards.", form)

    def _page(self, request: HttpRequest, title: str, consequence: str, form: forms.Form) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "consequence": consequence,
            "form": form,
            "opts": self.model._meta,
        }
        return TemplateResponse(request, "admin/marketplace/block.html", context)

    @admin.action(description="Take off the block list", permissions=["remove"])
    def take_off(self, request: HttpRequest, queryset: QuerySet[BlockEntry]) -> HttpResponse | None:
        """Redirect to the page that removes the selected entry; only one, because each removal has its own reason."""
        entries = list(queryset[:2])
        if len(entries) != 1:
            self.message_user(request, "Choose one entry: each is taken off for a reason of its own.", messages.WARNING)
            return None
        return HttpResponseRedirect(reverse("admin:marketplace_blockentry_remove", args=[entries[0].pk]))

    @admin.display(description="kind")
    def kind(self, entry: BlockEntry) -> str:
        """Return what kind of value is blocked."""
        return str(_block(entry).kind)

    @admin.display(description="value")
    def value_shown(self, entry: BlockEntry) -> str:
        """Return the blocked value."""
        return _block(entry).value

    @admin.display(description="reason")
    def reason(self, entry: BlockEntry) -> str:
        """Return why it is blocked."""
        return _block(entry).reason

    @admin.display(description="by")
    def actor(self, entry: BlockEntry) -> str:
        """Return who blocked it."""
        return _block(entry).actor


def _block(entry: BlockEntry) -> Block:
    try:
        value = decode(entry.value)
    except ValueError:
        value = None
    return block_of(entry.key, value)


def _actor(request: HttpRequest) -> str:
    return request.user.get_username()
