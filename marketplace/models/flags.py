"""Tables of what became known about a version after it was published: its flags, and its later scans."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from marketplace.fields import JSONTextField


class SkillFlag(models.Model):
    """A warning about one published version, one for each kind; ``marketplace.flags`` writes it.

    ``kind`` is a ``FlagKind``, ``reason`` a sentence that holders read, and ``details`` what an operator sees besides.
    """

    namespace = models.CharField(max_length=64)
    skill = models.ForeignKey("marketplace.SkillEntry", on_delete=models.PROTECT, related_name="flags")
    version = models.ForeignKey("marketplace.SkillVersion", on_delete=models.PROTECT, related_name="flags")
    kind = models.CharField(max_length=32)
    reason = models.TextField()
    details = JSONTextField(default=dict)
    actor = models.CharField(max_length=150)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "flag"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["version", "kind"], name="flag_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["namespace", "-id"], name="flag_newest")]

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


class LaterScan(models.Model):
    """The latest scan of a version after its publication; the version itself keeps the scan that it was published by.

    ``scan_key`` names the engines, their versions and the rules (see ``SkillVersion.scan_key``). ``verdict`` to
    ``findings`` are as in ``SkillVersion``. ``accepted_verdict`` is the gravest one for which an operator took the flag
    off, empty where none did.
    """

    namespace = models.CharField(max_length=64)
    version = models.OneToOneField("marketplace.SkillVersion", on_delete=models.PROTECT, related_name="later_scan")
    scan_key = models.CharField(max_length=32)
    verdict = models.CharField(max_length=16)
    accepted_verdict = models.CharField(max_length=16, blank=True, default="")
    verdict_summary = models.TextField(blank=True)
    capabilities = JSONTextField(default=list)
    engines = JSONTextField(default=list)
    findings = JSONTextField(default=list)
    scanned_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "later scan"
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["namespace", "-id"], name="later_scan_newest")]

    def __str__(self) -> str:
        return f"{self.verdict} at {self.scanned_at}"


class PastScan(models.Model):
    """What scans after the publication of a version came to; ``skills.scan_history`` writes and reads it.

    One row stands for scans in a row that came to the same: ``times`` of them, from ``first_at`` to ``last_at``.
    ``scanner`` is empty for the engines of the registry, else the name of the one outside that was asked. ``outcome``
    is the verdict, or the state in which a scan outside ended. ``engines`` are as in ``SkillVersion``, and ``findings``
    is how many there were of each severity.
    """

    namespace = models.CharField(max_length=64)
    version = models.ForeignKey(
        "marketplace.SkillVersion", on_delete=models.CASCADE, related_name="past_scans", db_index=False
    )
    scanner = models.CharField(max_length=100, blank=True)
    outcome = models.CharField(max_length=16)
    engines = JSONTextField(default=list)
    findings = JSONTextField(default=dict)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    times = models.IntegerField(default=1)

    class Meta:
        verbose_name = "past scan"
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["version", "scanner", "-id"], name="past_scan_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.outcome} at {self.first_at}"
