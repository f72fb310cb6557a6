"""The table of what visitors report of skills."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now


class VisitorReport(models.Model):
    """A visitor's report about a skill; ``marketplace.visitor_reports`` writes it.

    ``reference`` is the secret by which the visitor sees its state. ``reason`` is a ``ReportReason``, ``evidence`` and
    ``contact`` are texts from a stranger. ``state`` is a ``ReportState``; ``decided_by`` and ``decision_reason`` are
    the operator's.
    """

    namespace = models.CharField(max_length=64)
    reference = models.CharField(max_length=64, unique=True)
    skill = models.ForeignKey("marketplace.SkillEntry", on_delete=models.PROTECT, related_name="reports")
    version = models.CharField(max_length=64, blank=True)
    reason = models.CharField(max_length=24)
    evidence = models.TextField()
    contact = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=16, default="open")
    decided_by = models.CharField(max_length=150, blank=True)
    decision_reason = models.TextField(blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "report of a visitor"
        verbose_name_plural = "reports of visitors"
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["namespace", "state", "-id"], name="report_newest"),
            models.Index(fields=["skill", "state"], name="report_of_skill"),
        ]

    def __str__(self) -> str:
        return f"{self.reason} ({self.state})"
