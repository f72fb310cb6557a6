"""Subscriptions and deliveries in the admin: how each is, what was sent, ended and sent again by operations."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from submissions.notification_models import NotificationDelivery, NotificationSubscription
from submissions.notifications.claims import redeliver
from submissions.notifications.listing import state_of, type_of
from submissions.notifications.rotation import end_earlier
from submissions.notifications.subscriptions import enable, remove
from vskill.environments import WorkerEnv
from vskill.operations_admin import OperationsAdmin, RowOperation
from vskill.read_only_admin import ChoiceFilter

_MOST_ATTEMPTS_SHOWN: Final = 50


def _remove(env: WorkerEnv, row: NotificationSubscription, *, actor: str, reason: str) -> None:
    remove(env, row, actor=f"{actor}: {reason}")


def _enable(env: WorkerEnv, row: NotificationSubscription, *, actor: str, reason: str) -> None:
    enable(env, row)


def _end_earlier(env: WorkerEnv, row: NotificationSubscription, *, actor: str, reason: str) -> None:
    end_earlier(env, row, actor=f"{actor}: {reason}")


def _redeliver(env: WorkerEnv, row: NotificationDelivery, *, actor: str, reason: str) -> None:
    redeliver(env, row.pk)


class SubscriptionState(ChoiceFilter):
    """How a subscription is."""

    title = "state"
    parameter_name = "state"
    choices_offered = (("failing", "failing"), ("disabled", "disabled"), ("removed", "removed"))

    def condition(self, choice: str) -> Q | None:
        """Return the condition of a choice."""
        return {
            "failing": Q(failing_since__isnull=False, disabled_at__isnull=True, removed_at__isnull=True),
            "disabled": Q(disabled_at__isnull=False, removed_at__isnull=True),
            "removed": Q(removed_at__isnull=False),
        }.get(choice)


@admin.register(NotificationSubscription)
class SubscriptionAdmin(OperationsAdmin):
    """Who is told of what; webhooks are added by the command ``webhook`` and by persons for themselves."""

    list_display = ("pk", "way", "url", "label", "kinds", "shown_owner", "shown_state")
    list_display_links = ("pk", "url")
    list_filter = (SubscriptionState,)
    search_fields = ("owner",)
    search_help_text = "The exact name of an account"
    ordering = ("-id",)
    actions = ("enable", "end-earlier", "remove")
    # Never its secret.
    fields = ("way", "url", "label", "kinds", "shown_owner", "created_by", "created_at", "shown_state", "removed_at")
    readonly_fields = fields
    operations: ClassVar[dict[str, RowOperation]] = {
        "enable": RowOperation(
            "enable", "Enable", "Notifications are sent to it again from now on; what it missed is not.", _enable
        ),
        "end-earlier": RowOperation(
            "end-earlier",
            "End the secret before",
            "What is sent is signed with the newest secret alone; a receiver that does not know that one refuses it.",
            _end_earlier,
        ),
        "remove": RowOperation(
            "remove", "Remove", "Nothing more is sent to it, and its secret is forgotten. Its log is kept.", _remove
        ),
    }
    operate_template = "admin/submissions/operate_notifications.html"

    def search_condition(self, term: str) -> Q:
        """Return the condition for the exact name of an account."""
        return Q(owner=term)

    def name_of(self, target: NotificationSubscription) -> str:
        """Return what messages call a subscription."""
        return str(target)

    @admin.display(description="of")
    def shown_owner(self, row: NotificationSubscription) -> str:
        """Return whose it is."""
        return row.owner or "the operators"

    @admin.display(description="state")
    def shown_state(self, row: NotificationSubscription) -> str:
        """Return how it is, in a few words."""
        return row.disabled_because if row.removed_at is not None else state_of(row, timezone.now())


class DeliveryState(ChoiceFilter):
    """What became of a delivery."""

    title = "state"
    parameter_name = "state"
    choices_offered = (("pending", "on its way"), ("delivered", "delivered"), ("failed", "given up"))


@admin.register(NotificationDelivery)
class DeliveryAdmin(OperationsAdmin):
    """What was sent to whom, and what each attempt came to."""

    list_display = ("key", "shown_type", "subscription_id", "state", "attempts", "said", "created_at")
    list_filter = (DeliveryState,)
    search_fields = ("key",)
    search_help_text = "The beginning of an id, msg_…"
    ordering = ("-id",)
    sortable_by = ()
    actions = ("redeliver",)
    fields = ("key", "shown_type", "shown_receiver", "state", "attempts", "said", "due_at", "finished_at", "shown_log")
    readonly_fields = fields
    list_select_related = ("event",)
    operations: ClassVar[dict[str, RowOperation]] = {
        "redeliver": RowOperation(
            "redeliver", "Send again", "It is sent again in the next run, under the same id.", _redeliver
        )
    }
    operate_template = "admin/submissions/operate_notifications.html"

    def name_of(self, target: NotificationDelivery) -> str:
        """Return what messages call a delivery."""
        return target.key

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return the deliveries with their events and receivers."""
        return super().get_queryset(request).select_related("event", "subscription")

    @admin.display(description="type")
    def shown_type(self, row: NotificationDelivery) -> str:
        """Return how its event is called."""
        return type_of(row.event.kind)

    @admin.display(description="sent to")
    def shown_receiver(self, row: NotificationDelivery) -> str:
        """Return where it goes."""
        return f"{row.subscription} {row.subscription.url}"

    @admin.display(description="attempts")
    def shown_log(self, row: NotificationDelivery) -> SafeString:
        """Return each attempt with the status, how long it took, and the first bytes of the answer."""
        attempts = row.log.order_by("-id")[:_MOST_ATTEMPTS_SHOWN]
        lines = (
            (f"{one.at:%Y-%m-%d %H:%M:%S}", one.status or one.error, one.milliseconds, one.answer) for one in attempts
        )
        return format_html_join("", "<p>{}: {}, {} ms<br><code>{}</code></p>", lines)
