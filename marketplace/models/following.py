"""The table of followed repositories."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from vskill.kv.clock import parse_isoformat
from vskill.kv.codec import storable
from vskill.kv.models import AbstractKVEntry, KVEntryManager

FOLLOW_PREFIX = "follow:"


class FollowedEntry(AbstractKVEntry):
    """A repository whose new commits are submitted by themselves, ``follow:{digest of its address}``.

    ``due_at`` is when something is to be done about it next, and empty once it is not followed any more: the entry
    stays, so that its version goes on. ``marketplace.following`` has the value.
    """

    projected_columns: ClassVar[tuple[str, ...]] = ("repo_url", "state", "due_at")

    repo_url = models.CharField(max_length=500, blank=True, default="")
    state = models.CharField(max_length=16, blank=True, default="")
    due_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[KVEntryManager[FollowedEntry]] = KVEntryManager()

    class Meta(AbstractKVEntry.Meta):
        verbose_name = "followed repository"
        verbose_name_plural = "followed repositories"
        indexes: ClassVar[list[models.Index]] = [
            *AbstractKVEntry.Meta.indexes,
            models.Index(fields=["namespace", "due_at"], condition=Q(due_at__isnull=False), name="followed_due"),
            models.Index(fields=["namespace", "repo_url"], name="followed_repository"),
        ]

    @classmethod
    def project(cls, value: Any) -> dict[str, Any]:
        """Return the projected columns of a value; a field that is absent or of another type gives an empty column."""
        fields = value if isinstance(value, dict) else {}

        def text(name: str, length: int) -> str:
            found = fields.get(name)
            return storable(found)[:length] if isinstance(found, str) else ""

        return {
            "repo_url": text("repoUrl", 500),
            "state": text("state", 16),
            "due_at": parse_isoformat(fields.get("dueAt")),
        }
