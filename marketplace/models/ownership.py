"""The tables of who owns a publisher, of skills that were handed from one to another, and of where skills were."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from vskill.kv.fields import KeyField

WAITING = "waiting"
PROVEN = "proven"
# The proof of a claim that an operator granted.
BY_OPERATOR = "operator"
OFFERED = "offered"
DONE = "done"
DECLINED = "declined"
WITHDRAWN = "withdrawn"
UNDONE = "undone"
# Of an offer that nobody took in time, once the skill is offered again.
LAPSED = "lapsed"


class PublisherClaim(models.Model):
    """That an account says, or has proven, that a publisher is its own; ``marketplace.ownership`` writes it.

    ``publisher`` is the identity, ``host/owner``. ``account_id`` is the primary key of a user, who may be in another
    database. ``code`` is what has to be found in ``repo_url`` before ``expires_at``. ``state`` is ``waiting``,
    ``proven`` or ``ended``; ``proof`` is a ``Proof`` and ``evidence`` where it was seen. A publisher has one proven
    claim at most. ``offered_to`` is the primary key of an account that may take it over.
    """

    namespace = models.CharField(max_length=64)
    publisher = KeyField(max_length=300)
    handle = models.CharField(max_length=200)
    account_id = models.BigIntegerField()
    account_name = models.CharField(max_length=150)
    repo_url = models.CharField(max_length=500, blank=True)
    code = models.CharField(max_length=64)
    state = models.CharField(max_length=16, default=WAITING)
    proof = models.CharField(max_length=16, blank=True)
    evidence = models.CharField(max_length=600, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    checked_at = models.DateTimeField(null=True, blank=True)
    proven_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=150, blank=True)
    end_reason = models.TextField(blank=True)
    offered_to = models.BigIntegerField(null=True, blank=True)
    offered_to_name = models.CharField(max_length=150, blank=True, default="", db_default="")
    offered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "claim of a publisher"
        verbose_name_plural = "claims of publishers"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["namespace", "publisher"], condition=Q(state=PROVEN), name="claim_one_proven"
            ),
            models.UniqueConstraint(
                fields=["namespace", "publisher", "account_id"], condition=Q(state=WAITING), name="claim_one_waiting"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["namespace", "publisher", "state"], name="claim_publisher"),
            models.Index(fields=["namespace", "account_id", "state"], name="claim_account"),
            models.Index(fields=["namespace", "-id"], name="claim_newest"),
            models.Index(
                fields=["namespace", "offered_to"], condition=Q(offered_to__isnull=False), name="claim_offered"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.publisher} by {self.account_name} ({self.state})"


class SkillTransfer(models.Model):
    """That a skill was offered to another publisher, or was handed to it; ``marketplace.ownership`` writes it.

    ``state`` is ``offered``, ``done``, ``declined``, ``withdrawn``, ``lapsed`` or ``undone``. The fields that
    begin with ``from`` are what the skill was, from which a transfer is undone and old names lead on.
    """

    namespace = models.CharField(max_length=64)
    skill = models.ForeignKey("marketplace.SkillEntry", on_delete=models.PROTECT, related_name="transfers")
    from_publisher = KeyField(max_length=300)
    from_handle = KeyField(max_length=200)
    from_repo_url = models.CharField(max_length=500)
    from_skill_path = models.CharField(max_length=400, blank=True)
    to_publisher = KeyField(max_length=300)
    to_handle = KeyField(max_length=200)
    to_repo_url = models.CharField(max_length=500)
    to_skill_path = models.CharField(max_length=400, blank=True)
    state = models.CharField(max_length=16, default=OFFERED)
    reason = models.TextField(blank=True)
    offered_by = models.CharField(max_length=150)
    decided_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "transfer of a skill"
        verbose_name_plural = "transfers of skills"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["namespace", "skill"], condition=Q(state=OFFERED), name="transfer_one_offered"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["namespace", "from_handle", "state"], name="transfer_from"),
            models.Index(fields=["namespace", "to_publisher", "state"], name="transfer_to"),
            models.Index(fields=["namespace", "from_publisher", "state"], name="transfer_of"),
        ]

    def __str__(self) -> str:
        return f"{self.from_handle} to {self.to_handle} ({self.state})"


class SkillPlace(models.Model):
    """That a skill was or will be published from a folder, or that the folder held its content.

    ``identity`` is that of the folder in its repository (``marketplace.skills.publishers.skill_identity``), other than
    the skill's present one. ``marketplace.skills.places`` writes it, and nothing takes it back.
    """

    namespace = models.CharField(max_length=64)
    identity = models.CharField(max_length=64)
    skill = models.ForeignKey("marketplace.SkillEntry", on_delete=models.CASCADE, related_name="places")

    class Meta:
        verbose_name = "place of a skill"
        verbose_name_plural = "places of skills"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["identity", "skill"], name="place_once"),
        ]

    def __str__(self) -> str:
        return f"{self.identity} of {self.skill_id}"
