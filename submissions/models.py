"""The tables of submissions: the entries, their history, the messages of the queue, and the sweeps of recovery.

The table of waivers is in ``waiver_models``, those of uploads are in ``upload_models``, those of notifications in
``notification_models``.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from submissions import notification_models
from submissions.review_rank import review_rank
from submissions.states import LIVE_STATES, STUCK_STATES, State
from submissions.upload_models import StagedFile, UploadedBundle
from submissions.waiver_models import Waiver
from vskill.kv.clock import parse_isoformat
from vskill.kv.models import AbstractKVEntry, KVEntryManager

__all__ = [
    "SUBMISSION_PREFIX",
    "HeldSubmission",
    "QueueMessage",
    "RecoverySweep",
    "RuleSign",
    "StagedFile",
    "SubmissionEntry",
    "SubmissionTransition",
    "UploadedBundle",
    "Waiver",
    "notification_models",
]

SUBMISSION_PREFIX = "sub:"


class SubmissionEntry(AbstractKVEntry):
    """A submission, ``sub:{id}``, with the columns that queue, recovery and pages query.

    ``identity`` is equal for submissions of the same skill: a hash of the normalised repository URL and the path in it.
    """

    projected_columns: ClassVar[tuple[str, ...]] = (
        "state",
        "identity",
        "repo_url",
        "skill_path",
        "skill_name",
        "content_hash",
        "verdict",
        "state_at",
        "submitted_at",
        "review_rank",
        "audience",
    )

    state = models.CharField(max_length=24, blank=True, default="")
    identity = models.CharField(max_length=64, blank=True, default="")
    repo_url = models.CharField(max_length=500, blank=True, default="")
    skill_path = models.CharField(max_length=400, blank=True, default="")
    skill_name = models.CharField(max_length=200, blank=True, default="")
    content_hash = models.CharField(max_length=64, blank=True, default="")
    verdict = models.CharField(max_length=16, blank=True, default="")
    state_at = models.DateTimeField(null=True, blank=True)
    submitted_at = models.DateTimeField(null=True, blank=True)
    # None where no person has to decide; the previous release writes rows without it.
    review_rank = models.IntegerField(null=True, blank=True)
    # To whom its submitter wants it shown, in a form of its own so that only such rows are in an index.
    audience = models.CharField(max_length=40, null=True, blank=True)  # noqa: DJ001 - the previous release writes none

    objects: ClassVar[KVEntryManager[SubmissionEntry]] = KVEntryManager()

    class Meta(AbstractKVEntry.Meta):
        verbose_name = "submission"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *AbstractKVEntry.Meta.constraints,
            models.UniqueConstraint(
                fields=["namespace", "identity"],
                condition=Q(state__in=sorted(LIVE_STATES)),
                name="submission_one_live_per_skill",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            *AbstractKVEntry.Meta.indexes,
            models.Index(
                fields=["namespace", "state_at"], condition=Q(state__in=sorted(STUCK_STATES)), name="submission_stuck"
            ),
            # Includes the expiry, so that counting the live entries of each state reads the index alone.
            models.Index(fields=["namespace", "state", "-submitted_at", "expires_at"], name="submission_by_state"),
            models.Index(fields=["namespace", "identity", "-submitted_at"], name="submission_identity"),
            models.Index(fields=["namespace", "-submitted_at"], name="submission_newest"),
            # Includes the order of the query; otherwise SQLite reads the whole index over time from its end instead.
            models.Index(fields=["namespace", "repo_url", "-submitted_at"], name="submission_of_repository"),
            # For the prefix of an address, which PostgreSQL finds by no index of another operator class.
            models.Index(
                fields=["namespace", "repo_url"],
                opclasses=["varchar_ops", "varchar_pattern_ops"],
                name="submission_address_prefix",
            ),
            models.Index(fields=["namespace", "skill_name"], name="submission_name"),
            # In the order of the review queue.
            models.Index(
                fields=["namespace", "-review_rank", "submitted_at", "id"],
                condition=Q(review_rank__isnull=False),
                name="submission_review",
            ),
            models.Index(
                fields=["namespace", "audience", "repo_url"],
                condition=Q(audience__isnull=False),
                name="submission_audience",
            ),
        ]

    @property
    def submission_id(self) -> str:
        """Return the id without its prefix."""
        return str(self.key).removeprefix(SUBMISSION_PREFIX)

    @classmethod
    def project(cls, value: Any) -> dict[str, Any]:
        """Return the typed columns of a submission's value; a part that is missing or no text stays empty."""
        fields = value if isinstance(value, dict) else {}

        def text(name: str, length: int) -> str:
            found = fields.get(name)
            return found[:length] if isinstance(found, str) else ""

        return {
            "state": text("state", 24),
            "identity": text("identity", 64),
            "repo_url": text("repoUrl", 500),
            "skill_path": text("skillPath", 400),
            "skill_name": text("skillName", 200),
            "content_hash": text("contentHash", 64),
            "verdict": text("verdict", 16),
            "state_at": parse_isoformat(fields.get("updatedAt")),
            "submitted_at": parse_isoformat(fields.get("createdAt")),
            "review_rank": review_rank(fields),
            "audience": text("audience", 40) or None,
        }


class HeldSubmission(SubmissionEntry):
    """A submission that waits for a reviewer, for the admin; it is read and written as any other."""

    class Meta:
        proxy = True
        verbose_name = "held submission"
        verbose_name_plural = "review queue"


class RuleSign(models.Model):
    """One rule of one engine that holds one submission, and what a reviewer decided about that submission.

    ``outcome`` is empty until then. The accuracy of a rule is counted over these rows, so that reviewers who decide at
    the same time write no row of each other.
    """

    namespace = models.CharField(max_length=64)
    submission_id = models.CharField(max_length=64)
    engine = models.CharField(max_length=64)
    rule_id = models.CharField(max_length=200)
    severity = models.CharField(max_length=16)
    outcome = models.CharField(
        max_length=16, blank=True, default="", help_text="upheld or overturned; empty: undecided"
    )

    class Meta:
        verbose_name = "sign of a rule"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["namespace", "submission_id", "engine", "rule_id"], name="sign_once_per_submission"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["namespace", "engine", "rule_id", "outcome"], name="sign_of_rule"),
        ]

    def __str__(self) -> str:
        return f"{self.engine} {self.rule_id} on {self.submission_id}"


class SubmissionTransition(models.Model):
    """One transition of one submission, written in the transaction that made it and never changed."""

    namespace = models.CharField(max_length=64)
    submission_id = models.CharField(max_length=64)
    sequence = models.BigIntegerField(help_text="version of the entry that this step wrote")
    from_state = models.CharField(max_length=24, blank=True)
    to_state = models.CharField(max_length=24, choices=[(state, state) for state in State])
    reason = models.TextField(blank=True)
    actor = models.CharField(max_length=150)
    trigger = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "transition"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "submission_id", "sequence"], name="transition_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["namespace", "-id"], name="transition_newest")]

    def __str__(self) -> str:
        return f"{self.submission_id}: {self.from_state or 'new'} to {self.to_state}"


class QueueMessage(models.Model):
    """A piece of work: waiting until ``available_at``, leased until ``leased_until``, or parked as a dead letter.

    A message that is done is deleted. ``subject`` is the id of what it is about; there is one unparked message for each
    kind and subject. ``errors`` counts attempts that ended with an error, ``crashes`` those whose lease ended without a
    settlement. Messages are received in the order of ``turn``, and among equal ones of ``due_at``: the time at which
    they became available, less what their priority is worth. ``publisher`` and ``weight`` decide the turn when a
    message is sent (see ``submissions.queue.turns``); one that is delayed has none until its time has come.
    """

    environment = models.CharField(max_length=64)
    kind = models.CharField(max_length=64)
    subject = models.CharField(max_length=200)
    # With defaults of the database, because the previous release knows neither while it is being replaced.
    publisher = models.CharField(max_length=300, blank=True, db_default="")
    weight = models.FloatField(db_default=1.0)
    turn = models.FloatField(null=True, blank=True)
    body = models.TextField(default="{}")
    priority = models.SmallIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())
    available_at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField(db_default=Now())
    lease_token = models.CharField(max_length=32, blank=True, default="")
    leased_until = models.DateTimeField(null=True, blank=True)
    leased_by = models.CharField(max_length=100, blank=True, default="")
    errors = models.SmallIntegerField(default=0)
    crashes = models.SmallIntegerField(default=0)
    last_error = models.TextField(blank=True, default="")
    parked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["environment", "kind", "subject"], name="message_once", condition=Q(parked_at__isnull=True)
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["environment", "turn", "due_at", "id"],
                condition=Q(parked_at__isnull=True, turn__isnull=False),
                name="message_turn",
            ),
            models.Index(
                fields=["environment", "publisher", "due_at", "id"],
                condition=Q(parked_at__isnull=True, turn__isnull=False),
                name="message_of_publisher",
            ),
            models.Index(
                fields=["environment", "available_at"],
                condition=Q(parked_at__isnull=True, turn__isnull=True),
                name="message_without_turn",
            ),
            models.Index(
                fields=["environment"], condition=Q(parked_at__isnull=True, crashes__gt=0), name="message_crashed"
            ),
            models.Index(fields=["leased_until"], condition=Q(leased_until__isnull=False), name="message_lease"),
            models.Index(fields=["environment", "subject"], name="message_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class RecoverySweep(models.Model):
    """One sweep of recovery over one environment: what it read, what it did, and how it ended.

    ``ended_at`` is empty while it runs, and stays empty if it is killed.
    """

    environment = models.CharField(max_length=64)
    holder = models.CharField(max_length=100)
    started_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)
    read = models.IntegerField(default=0)
    failed_reads = models.IntegerField(default=0, help_text="malformed, unreadable and timed out")
    recovered = models.IntegerField(default=0)
    held = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)
    left = models.IntegerField(default=0)
    details = models.TextField(default="{}", help_text="the report of recover_stuck --json, its first 100 submissions")

    class Meta:
        verbose_name = "recovery sweep"
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["environment", "-started_at"], name="sweep_newest"),
        ]

    def __str__(self) -> str:
        return f"sweep of {self.environment} by {self.holder}"
