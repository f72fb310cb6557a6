"""The table of waivers: findings that a reviewer accepts in one skill, for a reason and a while."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Waiver(models.Model):
    """One finding in one skill that holds it no more until ``expires_at``; ``submissions.waivers`` writes it.

    ``identity`` is that of the skill, as in ``SubmissionEntry``. ``fingerprint`` names the finding with what it was
    found in, and ``scope`` says how much of that (see ``verification.fingerprints``); ``engine`` to ``line`` tell
    people what it was. ``owner`` answers for it. A waiver that is ended or lapsed stays as its own history.
    """

    namespace = models.CharField(max_length=64)
    identity = models.CharField(max_length=64)
    skill_name = models.CharField(max_length=200, blank=True)
    fingerprint = models.CharField(max_length=32)
    scope = models.CharField(max_length=16)
    engine = models.CharField(max_length=64)
    rule_id = models.CharField(max_length=200)
    title = models.TextField()
    file = models.TextField()
    line = models.IntegerField(null=True, blank=True)
    submission_id = models.CharField(max_length=64, help_text="the submission that it was granted for")
    reason = models.TextField()
    owner = models.CharField(max_length=150, help_text="who answers for it")
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=150, blank=True, default="")
    ended_reason = models.TextField(blank=True, default="")

    class Meta:
        verbose_name = "waiver"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["namespace", "identity", "fingerprint"],
                condition=Q(ended_at__isnull=True),
                name="waiver_one_open",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["namespace", "-id"], name="waiver_newest"),
            models.Index(fields=["namespace", "expires_at"], condition=Q(ended_at__isnull=True), name="waiver_expires"),
        ]

    def __str__(self) -> str:
        return f"{self.rule_id} in {self.skill_name or self.identity}"
