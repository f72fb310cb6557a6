"""Tables of known bad content, and of the digests by which published versions are compared with it."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now


class KnownBad(models.Model):
    """Content that is known to be bad: by its hash, by its normal digest, and by the sketch of its text.

    ``content_hash`` and ``normal_digest`` are each ``None`` where only the other is known. ``sketch`` is empty where
    nothing similar is to be found by it. ``name`` is what findings call the entry, ``source`` who says so.
    """

    namespace = models.CharField(max_length=64)
    name = models.CharField(max_length=200)
    content_hash = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 - unique where it is known
    normal_digest = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 - as above
    sketch = models.TextField(blank=True, default="")
    reason = models.TextField()
    source = models.CharField(max_length=500, blank=True, default="")
    actor = models.CharField(max_length=150)
    found_on = models.DateField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "known bad content"
        verbose_name_plural = "known bad content"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "content_hash"], name="known_bad_content_once"),
            models.UniqueConstraint(fields=["namespace", "normal_digest"], name="known_bad_digest_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["namespace", "-id"], name="known_bad_newest")]

    def __str__(self) -> str:
        return self.name


class KnownBadShingle(models.Model):
    """One value of the sketch of an entry of known bad content, for the search for similar ones."""

    namespace = models.CharField(max_length=64)
    value = models.BigIntegerField()
    entry = models.ForeignKey(KnownBad, on_delete=models.CASCADE, related_name="shingles")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "value", "entry"], name="known_bad_shingle_once"),
        ]

    def __str__(self) -> str:
        return str(self.value)


class VersionShingle(models.Model):
    """One of the lowest values of the sketch of a published version, by which candidates for a comparison are found."""

    namespace = models.CharField(max_length=64)
    value = models.BigIntegerField()
    version = models.ForeignKey("marketplace.SkillVersion", on_delete=models.CASCADE, related_name="shingles")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "value", "version"], name="version_shingle_once"),
        ]

    def __str__(self) -> str:
        return str(self.value)
