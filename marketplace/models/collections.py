"""The tables of collections: sets of skills that an operator puts together for a team or a purpose."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from vskill.kv.fields import KeyField


class Collection(models.Model):
    """A set of skills with an address of its own; ``marketplace.skill_sets`` writes it.

    ``purpose`` is a sentence about what it is for. ``revision`` rises with each change, so that an operator's form
    cannot overwrite what it has not shown.
    """

    namespace = models.CharField(max_length=64)
    slug = KeyField(max_length=64)
    title = models.CharField(max_length=100)
    purpose = models.CharField(max_length=300)
    revision = models.BigIntegerField(default=1)
    created_at = models.DateTimeField(db_default=Now())
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "slug"], name="collection_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["namespace", "-changed_at", "-id"], name="collection_changed"),
        ]

    def __str__(self) -> str:
        return str(self.title)


class CollectionSkill(models.Model):
    """A skill of a collection, with the number ``version`` that it is pinned to; empty follows the latest.

    The row of a skill stays when it is renamed, withheld or deleted, so what a collection holds is decided each time
    that it is read.
    """

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="members")
    skill = models.ForeignKey("marketplace.SkillEntry", on_delete=models.PROTECT, related_name="collections")
    position = models.PositiveSmallIntegerField()
    version = models.CharField(max_length=64, blank=True)
    note = models.CharField(max_length=300, blank=True)

    class Meta:
        verbose_name = "skill of a collection"
        verbose_name_plural = "skills of collections"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["collection", "skill"], name="collection_skill_once"),
        ]

    def __str__(self) -> str:
        return f"{self.position}: {self.version or 'latest'}"
