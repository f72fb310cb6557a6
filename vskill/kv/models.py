"""Entries in a table.

Each app models its own entries by a subclass of ``AbstractKVEntry`` with typed, indexed columns. These columns are
projected from the value in the same write and cannot be written alone, so that a row cannot disagree with itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self, TypeVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from vskill.kv.codec import MAX_KEY_LENGTH, decode, encode
from vskill.kv.errors import ProjectedColumn
from vskill.kv.fields import KeyField

EntryT = TypeVar("EntryT", bound="AbstractKVEntry", covariant=True)


class KVEntryQuerySet(models.QuerySet[EntryT]):
    """Entries, with a guard over the columns that belong together."""

    def live(self) -> Self:
        """Return the entries that have not expired by the database's clock."""
        return self.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=Now()))

    def update(self, **columns: Any) -> int:
        """Update columns that stand by themselves; raise ``ProjectedColumn`` for the value and what comes from it."""
        guarded = {"value", "version", *self.model.projected_columns}.intersection(columns)
        if guarded:
            raise ProjectedColumn(
                f"{sorted(guarded)} of {self.model.__name__} belong to the value and were left as they are; "
                "write them through KVNamespace.put()."
            )
        return super().update(**columns)

    def bulk_create(self, objs: Iterable[EntryT], *args: Any, **kwargs: Any) -> list[EntryT]:
        """Insert entries, each with the projection of its value; raise ``ProjectedColumn`` when it could overwrite."""
        if kwargs.get("update_conflicts"):
            raise ProjectedColumn(f"{self.model.__name__} is not overwritten in bulk; use KVNamespace.put().")
        made = list(objs)
        for entry in made:
            entry.set_projection()
        return super().bulk_create(made, *args, **kwargs)

    def bulk_update(self, *_args: Any, **_kwargs: Any) -> int:
        """Refuse: a bulk update would write columns apart from the value."""
        raise ProjectedColumn(f"{self.model.__name__} is not written in bulk; use KVNamespace.put().")

    def write_row(self, **columns: Any) -> int:
        """Update whole rows; for the KV layer alone, which passes the value together with its projection."""
        return super().update(**columns)


class KVEntryManager(models.Manager[EntryT]):
    """The manager of one table of entries; each concrete model names its own, so that its rows are typed."""

    def get_queryset(self) -> KVEntryQuerySet[EntryT]:
        """Return all entries, guarded."""
        return KVEntryQuerySet(self.model, using=self._db)

    def using(self, alias: str | None) -> KVEntryQuerySet[EntryT]:
        """Return all entries of one database."""
        return self.get_queryset().using(alias)

    def live(self) -> KVEntryQuerySet[EntryT]:
        """Return the entries that have not expired."""
        return self.get_queryset().live()


class AbstractKVEntry(models.Model):
    """A key, its JSON value, its metadata, a version that every write raises, and a time of expiry.

    ``namespace`` is the name of the environment. ``projected_columns`` names the columns of a subclass that ``project``
    computes.
    """

    projected_columns: ClassVar[tuple[str, ...]] = ()

    namespace = models.CharField(max_length=64)
    key = KeyField(max_length=MAX_KEY_LENGTH)
    value = models.TextField()
    metadata = models.TextField(default="{}")
    version = models.BigIntegerField(default=1)
    expires_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    objects: ClassVar[KVEntryManager[Any]] = KVEntryManager()

    class Meta:
        abstract = True
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "key"], name="%(app_label)s_%(class)s_key"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["namespace", "expires_at"],
                name="%(app_label)s_%(class)s_e",
                condition=Q(expires_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.key}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert a new entry with the projection of its value; raise ``ProjectedColumn`` for one that is there."""
        if not self._state.adding:
            raise ProjectedColumn(f"{self} was left as it is; an entry is changed through KVNamespace.put().")
        self.set_projection()
        super().save(*args, **kwargs)

    def set_projection(self) -> None:
        """Set the value as it is stored, and the columns that are projected from it."""
        decoded = decode(self.value)
        self.value = encode(decoded)
        for column, projected in self.project(decoded).items():
            setattr(self, column, projected)

    @classmethod
    def project(cls, value: Any) -> dict[str, Any]:  # noqa: ARG003 - a subclass has something to read from it
        """Return the typed columns of ``value``; a subclass names each of them in ``projected_columns``."""
        return {}


class KVEntry(AbstractKVEntry):
    """Whatever has no table of its own: health of repositories, external scans, heartbeats, pauses."""

    objects: ClassVar[KVEntryManager[KVEntry]] = KVEntryManager()

    class Meta(AbstractKVEntry.Meta):
        verbose_name = "KV entry"
        verbose_name_plural = "KV entries"
