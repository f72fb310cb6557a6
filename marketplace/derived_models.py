"""Tables that are derived from skills (search tokens, facets), and the counts of their downloads."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from vskill.kv.fields import KeyField


class SearchToken(models.Model):
    """One token of one skill in the inverted index, with its weight; a prefix is a range over ``token``."""

    namespace = models.CharField(max_length=64)
    token = KeyField(max_length=64)
    skill = models.ForeignKey("marketplace.SkillEntry", on_delete=models.CASCADE, related_name="search_tokens")
    weight = models.SmallIntegerField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "token", "skill"], name="search_token_once"),
        ]

    def __str__(self) -> str:
        return str(self.token)


class SkillFacet(models.Model):
    """A value of a facet of which a skill has several: a tag or a capability."""

    TAG = "tag"
    CAPABILITY = "capability"

    namespace = models.CharField(max_length=64)
    kind = models.CharField(max_length=16)
    value = KeyField(max_length=64)
    skill = models.ForeignKey("marketplace.SkillEntry", on_delete=models.CASCADE, related_name="facets")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "kind", "value", "skill"], name="facet_once"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"


class DownloadDay(models.Model):
    """The number of downloads of one version on one day (UTC)."""

    namespace = models.CharField(max_length=64)
    skill = models.ForeignKey("marketplace.SkillEntry", on_delete=models.CASCADE, related_name="download_days")
    version = models.CharField(max_length=64)
    day = models.DateField()
    count = models.BigIntegerField(default=0)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["skill", "version", "day"], name="download_day_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["namespace", "day", "skill"], name="download_recent"),
        ]

    def __str__(self) -> str:
        return f"{self.version} on {self.day}: {self.count}"
