"""Entries in a table.

Each app models its own entries as a subclass of ``AbstractKVEntry`` with typed, indexed columns. These columns are
projected from the value in the same write and cannot be written separately, so a row never contradicts its value.
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
    """A query of entries that refuses writes by which projected columns could contradict the value."""

    def live(self) -> Self:
        """Return the entries that have not expired by the database's clock."""
        return self.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=Now()))

    def update(self, **columns: Any) -> int:
        """Update independent columns; raise ``ProjectedColumn`` for the value, the version and projected columns."""
        guarded = {"value", "version", *self.model.projected_columns}.intersection(columns)
        if guarded:
            raise ProjectedColumn(
                f"{sorted(guarded)} of {self.model.__name__} belong to the value and were left as they are; "
                "write them through KVNamespace.put()."
            )
        return super().update(**columns)

    def bulk_create(self, objs: Iterable[EntryT], *args: Any, **kwargs: Any) -> list[EntryT]:
        """Insert entries, each with its projection; raise ``ProjectedColumn`` where existing ones could be updated."""
        if kwargs.get("update_conflicts"):
            raise ProjectedColumn(f"{self.model.__name__} is not overwritten in bulk; use KVNamespace.put().")
        made = list(objs)
        for entry in made:
            entry.set_projection()
        return super().bulk_create(made, *args, **kwargs)

    def bulk_update(self, *_args: Any, **_kwargs: Any) -> int:
        """Raise ``ProjectedColumn``: a bulk update would write columns without the value."""
        raise ProjectedColumn(f"{self.model.__name__} is not written in bulk; use KVNamespace.put().")

    def write_row(self, **columns: Any) -> int:
        """Update any columns, unguarded; for the KV layer only, which passes a value with its projection."""
        return super().update(**columns)


class KVEntryManager(models.Manager[EntryT]):
    """The manager of one table of entries; each concrete model declares its own, so that its rows are typed."""

    def get_queryset(self) -> KVEntryQuerySet[EntryT]:
        """Return a guarded query of all entries."""
        return KVEntryQuerySet(self.model, using=self._db)

    def using(self, alias: str | None) -> KVEntryQuerySet[EntryT]:
        """Return a guarded query of all entries in the database ``alias``."""
        return self.get_queryset().using(alias)

    def live(self) -> KVEntryQuerySet[EntryT]:
        """Return a guarded query of the entries that have not expired."""
        return self.get_queryset().live()


class AbstractKVEntry(models.Model):
    """One entry: a key with its JSON value, metadata, a version that every write raises, and an optional expiry.

    ``namespace`` is the name of the environment. A subclass lists in ``projected_columns`` the columns that its
    ``project`` computes.
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
        """Insert a new entry with its projection; raise ``ProjectedColumn`` for one that was read or saved before."""
        if not self._state.adding:
            raise ProjectedColumn(f"{self} was left as it is; an entry is changed through KVNamespace.put().")
        self.set_projection()
        super().save(*args, **kwargs)

    def set_projection(self) -> None:
        """Normalise the JSON of the value, and set the columns that are projected from it."""
        decoded = decode(self.value)
        self.value = encode(decoded)
        for column, projected in self.project(decoded).items():
            setattr(self, column, projected)

    @classmethod
    def project(cls, value: Any) -> dict[str, Any]:  # noqa: ARG003 - subclasses read it
        """Return the columns of a decoded ``value`` by name; the names are exactly those of ``projected_columns``."""
        return {}


class KVEntry(AbstractKVEntry):
    """An entry without a table of its own: health of repositories, external scans, heartbeats, pauses."""

    objects: ClassVar[KVEntryManager[KVEntry]] = KVEntryManager()

    class Meta(AbstractKVEntry.Meta):
        verbose_name = "KV entry"
        verbose_name_plural = "KV entries"
