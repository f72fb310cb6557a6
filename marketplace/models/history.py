"""The table of what was done to skills, and by whom."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now


class HistoryEvent(models.Model):
    """What was done to a skill or the block list, by whom and why; written with the change and never modified.

    ``by_publisher`` is whether the skill's publisher did it: true for what a publisher may undo, false for what it may
    not, since an operator did it, and ``None`` where the release that wrote the event did not say.
    """

    namespace = models.CharField(max_length=64)
    subject = models.CharField(max_length=600, help_text="key of the entry, as it was then")
    skill = models.ForeignKey(
        "marketplace.SkillEntry", on_delete=models.PROTECT, null=True, blank=True, related_name="history"
    )
    action = models.CharField(max_length=32)
    version = models.CharField(max_length=64, blank=True, default="")
    actor = models.CharField(max_length=150)
    reason = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(db_default=Now())
    by_publisher = models.BooleanField(null=True)

    class Meta:
        verbose_name = "event"
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["namespace", "-id"], name="history_newest"),
            models.Index(fields=["namespace", "subject"], name="history_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"
