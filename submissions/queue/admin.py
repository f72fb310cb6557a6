"""The operators' view of the queue and of the recovery sweeps."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.safestring import SafeString

from submissions.models import QueueMessage, RecoverySweep
from vskill.read_only_admin import ChoiceFilter, ReadOnlyAdmin, pretty_json


class MessageStateFilter(ChoiceFilter):
    """Messages in one state."""

    title = "state"
    parameter_name = "state"
    choices_offered = (("waiting", "waiting"), ("delayed", "delayed"), ("leased", "in work"), ("parked", "parked"))

    def condition(self, choice: str) -> Q | None:
        """Return the condition of a state by the database's clock."""
        free = Q(parked_at__isnull=True) & (Q(leased_until__isnull=True) | Q(leased_until__lte=Now()))
        return {
            "waiting": free & Q(available_at__lte=Now()),
            "delayed": free & Q(available_at__gt=Now()),
            "leased": Q(parked_at__isnull=True, leased_until__gt=Now()),
            "parked": Q(parked_at__isnull=False),
        }.get(choice)


@admin.register(QueueMessage)
class QueueMessageAdmin(ReadOnlyAdmin):
    """Messages that are not settled: their lease, their failures and the last error."""

    environment_column: ClassVar[str] = "environment"
    list_display = (
        "subject",
        "kind",
        "state",
        "publisher",
        "turn",
        "priority",
        "errors",
        "crashes",
        "available_at",
        "leased_by",
        "leased_until",
        "short_error",
    )
    list_filter = (MessageStateFilter,)
    search_fields = ("subject",)
    search_help_text = "The start of what the message is about (sub_…)"
    ordering = ("turn", "due_at", "id")

    @admin.display(description="place")
    def state(self, message: QueueMessage) -> str:
        """Return the state of a message in words."""
        now = timezone.now()
        if message.parked_at is not None:
            return "parked"
        if message.leased_until is not None and message.leased_until > now:
            return "in work"
        return "delayed" if message.available_at > now else "waiting"

    @admin.display(description="last error")
    def short_error(self, message: QueueMessage) -> str:
        """Return the beginning of the last error."""
        return message.last_error[:120] or "-"


class SweepFilter(ChoiceFilter):
    """Sweeps that moved something, had failures or never ended."""

    title = "outcome"
    parameter_name = "outcome"
    choices_offered = (
        ("moved", "moved something"),
        ("failed", "left something unread or undone"),
        ("open", "never ended"),
    )

    def condition(self, choice: str) -> Q | None:
        """Return the condition of an outcome."""
        return {
            "moved": Q(recovered__gt=0) | Q(held__gt=0),
            "failed": Q(failed__gt=0) | Q(failed_reads__gt=0) | Q(left__gt=0),
            "open": Q(ended_at__isnull=True),
        }.get(choice)


@admin.register(RecoverySweep)
class RecoverySweepAdmin(ReadOnlyAdmin):
    """The recovery sweeps of the last days: what each read and did."""

    environment_column: ClassVar[str] = "environment"
    list_display = ("started_at", "outcome", "read", "recovered", "held", "failed", "failed_reads", "left", "holder")
    list_filter = (SweepFilter,)
    ordering = ("-started_at",)
    fields = (*list_display, "ended_at", "report")
    readonly_fields = fields

    @admin.display(description="outcome")
    def outcome(self, sweep: RecoverySweep) -> str:
        """Return how a sweep ended, in words."""
        if sweep.ended_at is None:
            return "not ended"
        if sweep.failed or sweep.failed_reads:
            return "with failures"
        return "moved some" if sweep.recovered or sweep.held else "nothing to do"

    @admin.display(description="report")
    def report(self, sweep: RecoverySweep) -> SafeString:
        """Return the report of a sweep, indented."""
        return pretty_json(sweep.details)
