"""The operators' view of the tokens of one environment: shown without the tokens themselves, and revoked."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from vskill.access_tokens.models import AccessToken
from vskill.access_tokens.tokens import revoke
from vskill.environments import WorkerEnv
from vskill.operations_admin import OperationsAdmin, RowOperation
from vskill.worker_context import require_worker_env


def _revoke(_env: WorkerEnv, row: AccessToken, *, actor: str, reason: str) -> None:
    revoke(row, actor=actor, reason=reason)


OPERATIONS: Final = {
    "revoke": RowOperation(
        "revoke", "Revoke", "Programs that use it are refused from now on. It cannot be given back.", _revoke
    )
}


@admin.register(AccessToken)
class AccessTokenAdmin(OperationsAdmin):
    """The tokens of an environment, the newest first."""

    list_display = ("name", "user", "scopes", "state", "last_used_at", "expires_at", "created_at")
    list_select_related = ("user",)
    search_fields = ("name",)
    search_help_text = "The beginning of a token's name, or the name of a user"
    ordering = ("-id",)
    actions = ("revoke",)
    fields = (*list_display, "revoked_at", "revoked_by", "revoked_because")
    readonly_fields = fields
    operations = OPERATIONS
    operate_template = "admin/access_tokens/operate.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the tokens of the environment that the host name selects; they lie beside the users."""
        rows = AccessToken.objects.filter(namespace=require_worker_env().name)
        return rows.select_related("user").order_by(*self.get_ordering(request))

    def search_condition(self, term: str) -> Q:
        """Return the condition for a search term."""
        return Q(name__startswith=term) | Q(user__username=term)

    def name_of(self, target: AccessToken) -> str:
        """Return the name of a token and of its user."""
        return f"{target.name} of {target.user.get_username()}"
