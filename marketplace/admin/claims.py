"""Claims of publishers in the admin: who has which, by what proof, and an end to a claim."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin

from marketplace.models import PublisherClaim
from marketplace.ownership.claims import ClaimRefused, end
from vskill.environments import WorkerEnv
from vskill.operations_admin import OperationsAdmin, RowOperation
from vskill.read_only_admin import ChoiceFilter


def _revoke(env: WorkerEnv, claim: PublisherClaim, *, actor: str, reason: str) -> None:
    if not end(env, claim, actor=actor, reason=reason):
        raise ClaimRefused("This claim has ended already. Nothing was changed.")


OPERATIONS: Final = {
    one.name: one
    for one in (
        RowOperation(
            "revoke", "End the claim", "The account loses its rights over the publisher; what it did stays.", _revoke
        ),
    )
}


class StateFilter(ChoiceFilter):
    """Claims in one state."""

    title = "state"
    parameter_name = "state"
    choices_offered = (("waiting", "waiting"), ("proven", "proven"), ("ended", "ended"))


@admin.register(PublisherClaim)
class ClaimAdmin(OperationsAdmin):
    """Claims of publishers; a code is shown nowhere here, because whoever has it could help to prove the claim."""

    list_display = ("publisher", "handle", "account_name", "state", "proof", "proven_at")
    list_filter = (StateFilter,)
    ordering = ("-id",)
    sortable_by = ()
    actions = tuple(OPERATIONS)
    fields = (
        *("publisher", "handle", "account_name", "account_id", "repo_url", "state", "proof", "evidence"),
        *("created_at", "expires_at", "checked_at", "proven_at", "ended_at", "ended_by", "end_reason"),
        *("offered_to_name", "offered_at"),
    )
    readonly_fields = fields
    operations = OPERATIONS
    operate_template = "admin/marketplace/operate_claim.html"

    def name_of(self, target: Any) -> str:
        """Return the publisher and the account of a claim."""
        return f"{target.publisher} by {target.account_name}"
