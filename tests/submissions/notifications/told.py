"""Events as tests need them: submissions that end, and what a run delivers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.db.models import F

from submissions.notification_models import NotificationDelivery, NotificationPreference, NotificationSubscription
from submissions.notifications.deliver import DeliverReport, deliver
from submissions.notifications.preferences import ask_to_confirm, confirm, confirm_token, preference
from submissions.states import State
from submissions.store.records import Submission
from submissions.store.transitions import transition
from submissions.submitter import number_of
from tests.submissions.factories import make_submission
from vskill.environments import WorkerEnv
from vskill.models import RoleGrant
from vskill.worker_context import run_with_worker_env


def end(env: WorkerEnv, state: State = State.ON_HOLD, *, reason: str = "Two findings.", **fields: Any) -> Submission:
    """Let a submission end in a state; ``submitterAccount`` names who submitted it, as it is at that time."""
    fields = {"submitterNumber": number_of(fields.get("submitterAccount", "")), **fields}
    one = make_submission(env, State.TIER1_SCANNING, **fields)
    return transition(env, one, state, reason=reason, actor="test", trigger="test")


def run_deliver(env: WorkerEnv, **how: Any) -> DeliverReport:
    """Run ``deliver`` once."""

    async def main() -> DeliverReport:
        return await run_with_worker_env(env, deliver, **how)

    return async_to_sync(main)()


def make_due(**which: Any) -> int:
    """Let the time come for deliveries that wait."""
    rows = NotificationDelivery.objects.filter(state=NotificationDelivery.PENDING, **which)
    return rows.update(due_at=F("due_at") - timedelta(days=2))


def let_days_pass(days: int) -> None:
    """Move the time at which receivers failed first into the past."""
    NotificationSubscription.objects.exclude(failing_since=None).update(
        failing_since=F("failing_since") - timedelta(days=days)
    )


def person(name: str, role: str = "submitter", **columns: Any) -> Any:
    """Make an account with a role in the environment ``default``."""
    made = get_user_model()._default_manager.create_user(name, **columns)
    if role:
        RoleGrant.objects.create(
            user=made, environment="default", role=role, granted_by="test", granted_at="2026-01-01T00:00:00Z"
        )
    return made


def confirmed(env: WorkerEnv, account: Any, address: str) -> Any:
    """Let an account have a confirmed address, as if the mail that asks for that had come; return the account."""
    ask_to_confirm(env, account, address)
    NotificationPreference.objects.filter(owner_id=account.pk).update(confirm_at=None)
    confirm(env, confirm_token(env, preference(env, account)))
    return account
