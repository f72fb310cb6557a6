"""The tables of notifications: what happened, who wants to hear of it, and what was sent to them."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from marketplace.fields import JSONTextField


class NotificationEvent(models.Model):
    """Something that people are told, written in the transaction that caused it: the outbox of notifications.

    ``kind`` is a ``Kind`` of ``submissions.outbox``. ``source`` names the row of the history that it is about, so that
    nothing is told twice. ``data`` is what is told. ``fanned_out_at`` is empty until there is a delivery for everybody
    who wants to hear of it.
    """

    namespace = models.CharField(max_length=64)
    kind = models.CharField(max_length=16)
    source = models.CharField(max_length=120)
    submission_id = models.CharField(max_length=64, blank=True)
    identity = models.CharField(max_length=64, blank=True, help_text="of the skill, as in its submission")
    publisher = models.CharField(max_length=300, blank=True)
    submitter = models.CharField(max_length=150, blank=True, help_text="account that submitted it, empty: unknown")
    submitter_id = models.BigIntegerField(null=True, blank=True, help_text="number of that account, which counts")
    data = JSONTextField(default=dict)
    created_at = models.DateTimeField(db_default=Now())
    fanned_out_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "notification event"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "source"], name="event_told_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["namespace", "id"], condition=Q(fanned_out_at__isnull=True), name="event_outbox"),
            models.Index(fields=["namespace", "-id"], name="event_newest"),
            models.Index(fields=["namespace", "submitter_id", "-id"], name="event_of_account"),
            models.Index(fields=["namespace", "created_at"], name="event_age"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.source}"


class NotificationSubscription(models.Model):
    """Who wants to hear of what, and in which way.

    ``owner_id`` is the number of an account and ``owner`` its name, empty for a webhook of the operators. ``scope`` is
    everything, own, publisher or skill, and ``scope_value`` the publisher's or the skill's identity. ``kinds`` are
    names with blanks between. A webhook has a ``url`` and a sealed ``secret``. ``failing_since`` is when it failed
    first after it last answered well, and ``rest_until`` is how long its receiver asked to be left alone. ``tell_at``
    is when the mail is due that tells its owner that it was disabled. One that is removed stays for its log, without
    its secret.
    """

    namespace = models.CharField(max_length=64)
    owner_id = models.BigIntegerField(null=True, blank=True)
    owner = models.CharField(max_length=150, blank=True)
    way = models.CharField(max_length=16)
    scope = models.CharField(max_length=16)
    scope_value = models.CharField(max_length=300, blank=True)
    label = models.CharField(max_length=300, blank=True, help_text="what people call the publisher or the skill")
    kinds = models.CharField(max_length=100)
    url = models.CharField(max_length=1000, blank=True)
    secret = models.TextField(blank=True)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(db_default=Now())
    failing_since = models.DateTimeField(null=True, blank=True)
    rest_until = models.DateTimeField(null=True, blank=True)
    disabled_at = models.DateTimeField(null=True, blank=True)
    disabled_because = models.TextField(blank=True, default="")
    tell_at = models.DateTimeField(null=True, blank=True)
    tell_tries = models.IntegerField(default=0, db_default=0)
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "subscription"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["namespace", "owner_id", "way", "scope", "scope_value", "url"],
                condition=Q(removed_at__isnull=True),
                name="subscription_once",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["namespace", "scope", "scope_value"],
                condition=Q(removed_at__isnull=True),
                name="subscription_scope",
            ),
            models.Index(fields=["namespace", "owner_id"], name="subscription_owner"),
            models.Index(
                fields=["namespace", "tell_at"], condition=Q(tell_at__isnull=False), name="subscription_to_tell"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.way} {self.pk} of {self.owner or 'the operators'}"


class EarlierSecret(models.Model):
    """A sealed secret that a webhook had before its newest one, and that signs too until a time."""

    subscription = models.ForeignKey(NotificationSubscription, on_delete=models.CASCADE, related_name="earlier_secrets")
    secret = models.TextField()
    signs_until = models.DateTimeField()

    class Meta:
        verbose_name = "earlier secret"

    def __str__(self) -> str:
        return f"an earlier secret of {self.subscription_id}"


class NotificationPreference(models.Model):
    """How one account is told in one environment: its address of mail, how often, and its own feed.

    ``address`` counts once it is confirmed; ``confirm_at`` is when the mail that asks for that is due. ``rhythm`` is
    at_once or daily, and no mail is sent before ``next_at``. ``feed_digest`` is the SHA-256 of the secret in the
    address of the feed, empty: it has none.
    """

    namespace = models.CharField(max_length=64)
    owner_id = models.BigIntegerField()
    owner = models.CharField(max_length=150)
    address = models.CharField(max_length=254, blank=True)
    asked_at = models.DateTimeField(null=True, blank=True)
    confirm_at = models.DateTimeField(null=True, blank=True)
    confirm_tries = models.IntegerField(default=0)
    confirmed_at = models.DateTimeField(null=True, blank=True)
    rhythm = models.CharField(max_length=16, default="at_once")
    next_at = models.DateTimeField(null=True, blank=True)
    feed_digest = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        verbose_name = "notification preference"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "owner_id"], name="preference_once"),
            models.UniqueConstraint(fields=["feed_digest"], condition=~Q(feed_digest=""), name="preference_feed"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["namespace", "confirm_at"], condition=Q(confirm_at__isnull=False), name="preference_confirm"
            ),
        ]

    def __str__(self) -> str:
        return f"how {self.owner} is told"


class NotificationDelivery(models.Model):
    """One event on its way to one subscription: due at a time, leased to one process, delivered or given up.

    ``key`` stays the same at each attempt, so that a receiver can drop what it has already.
    """

    PENDING, DELIVERED, FAILED = "pending", "delivered", "failed"

    namespace = models.CharField(max_length=64)
    event = models.ForeignKey(NotificationEvent, on_delete=models.CASCADE, related_name="deliveries")
    subscription = models.ForeignKey(
        NotificationSubscription, on_delete=models.CASCADE, related_name="deliveries", db_index=False
    )
    key = models.CharField(max_length=64, unique=True)
    state = models.CharField(max_length=16, default=PENDING)
    attempts = models.IntegerField(default=0)
    due_at = models.DateTimeField(db_default=Now())
    lease_token = models.CharField(max_length=32, blank=True, default="")
    leased_until = models.DateTimeField(null=True, blank=True)
    said = models.TextField(blank=True, default="", help_text="what the last attempt came to")
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "delivery"
        verbose_name_plural = "deliveries"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["event", "subscription"], name="delivery_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["namespace", "subscription", "due_at"], condition=Q(state="pending"), name="delivery_due"
            ),
            models.Index(fields=["subscription", "-id"], name="delivery_newest"),
            models.Index(fields=["namespace", "-id"], name="delivery_of_environment"),
            models.Index(fields=["lease_token"], condition=~Q(lease_token=""), name="delivery_lease"),
        ]

    def __str__(self) -> str:
        return f"{self.key} ({self.state})"


class DeliveryAttempt(models.Model):
    """One attempt of a delivery: the status and the first bytes of the answer, or why there was none."""

    delivery = models.ForeignKey(NotificationDelivery, on_delete=models.CASCADE, related_name="log")
    at = models.DateTimeField(db_default=Now())
    status = models.IntegerField(null=True, blank=True)
    milliseconds = models.IntegerField(default=0)
    answer = models.TextField(blank=True, default="", help_text="the first bytes, hidden characters spelled out")
    error = models.TextField(blank=True, default="")

    class Meta:
        verbose_name = "attempt"

    def __str__(self) -> str:
        return f"{self.status or self.error} in {self.milliseconds} ms"
