"""Known bad content in the admin: the newest first, and forgotten with a reason."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest

from marketplace.known_bad.entries import forget
from marketplace.models import KnownBad
from vskill.environments import WorkerEnv
from vskill.operations_admin import OperationsAdmin, RowOperation


def _forget(env: WorkerEnv, entry: KnownBad, *, actor: str, reason: str) -> None:
    forget(env, entry.pk, actor=actor, reason=reason)


OPERATIONS: Final = {
    "forget": RowOperation(
        "forget",
        "Forget",
        "It is refused and held no more, and the flags that came of it are taken off. What was refused can be "
        "submitted again.",
        _forget,
    )
}


@admin.register(KnownBad)
class KnownBadAdmin(OperationsAdmin):
    """The entries of known bad content."""

    list_display = ("created_at", "name", "compared", "reason", "source", "actor")
    list_display_links = ("name",)
    search_fields = ("content_hash",)
    search_help_text = "The beginning of a content hash"
    ordering = ("-id",)
    actions = ("forget",)
    fields = (
        *("created_at", "name", "compared", "reason", "source", "found_on", "actor"),
        *("content_hash", "normal_digest"),
    )
    readonly_fields = fields
    operations = OPERATIONS
    operate_template = "admin/marketplace/operate_known_bad.html"

    def name_of(self, target: KnownBad) -> str:
        """Return the name of an entry."""
        return target.name

    def may_run(self, request: HttpRequest, operation: Any) -> bool:
        """Return whether this operator may forget entries."""
        user: Any = request.user
        return bool(user.has_perm("marketplace.delete_knownbad"))

    @admin.display(description="compared")
    def compared(self, row: KnownBad) -> str:
        """Return what is recognised by an entry."""
        texts = ["the same files"] if row.content_hash else []
        texts += ["the same text"] if row.normal_digest else []
        texts += ["similar text"] if row.sketch else []
        return ", ".join(texts)
