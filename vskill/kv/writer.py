"""Write entries: each function is one compare-and-set, synchronous, on the connection of the calling thread.

They may stand inside a larger transaction (a submission and its queue message, say). Asynchronous callers use ``KVNamespace``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from vskill.kv.clock import database_now
from vskill.kv.codec import check_key, encode
from vskill.kv.errors import InvalidValue, VersionConflict
from vskill.kv.models import AbstractKVEntry, KVEntryQuerySet

_LIVE = Q(expires_at__isnull=True) | Q(expires_at__gt=Now())


def _conflict(key: str, expected: int) -> VersionConflict:
    wanted = "not to exist" if expected == 0 else f"at version {expected}"
    return VersionConflict(f"{key!r} was expected {wanted}, and another writer was first. Nothing was written: read it again.")


def _columns(
    model: type[AbstractKVEntry], value: Any, metadata: Mapping[str, Any] | None, expires_at: datetime | None
) -> dict[str, Any]:
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidValue("Metadata is an object of names and values.")
    return {
        "value": encode(value),
        "metadata": encode(dict(metadata or {})),
        "expires_at": expires_at,
        "updated_at": Now(),
        **model.project(value),
    }


def _insert(model: type[AbstractKVEntry], alias: str, namespace: str, key: str, columns: dict[str, Any]) -> bool:
    """Insert a row; return False where another writer has put one there first."""
    try:
        with transaction.atomic(using=alias):
            # bulk_create because Model.save() would project again and first look for a row to update.
            model.objects.using(alias).bulk_create([model(namespace=namespace, key=key, version=1, **columns)])
    except IntegrityError:
        if model.objects.using(alias).filter(namespace=namespace, key=key).exists():
            return False
        raise
    return True


def put(
    model: type[AbstractKVEntry],
    alias: str,
    namespace: str,
    key: str,
    value: Any,
    *,
    metadata: Mapping[str, Any] | None = None,
    expires_at: datetime | None = None,
    ttl: timedelta | None = None,
    expect_version: int | None = None,
) -> int:
    """Write one entry with the columns that are projected from its value, and return its new version.

    ``expect_version`` is the version that must be there: 0 for none (an expired entry is none), ``None`` for any. ``ttl`` counts
    from the database's clock. Raises ``VersionConflict`` with nothing written, ``InvalidKey``, ``InvalidValue``, and whatever
    constraint of ``model`` the row would break as ``IntegrityError``.
    """
    check_key(key)
    if ttl is not None:
        if expires_at is not None:
            raise InvalidValue("Give expires_at or ttl, not both.")
        expires_at = database_now(alias) + ttl
    columns = _columns(model, value, metadata, expires_at)
    rows: KVEntryQuerySet[AbstractKVEntry] = model.objects.using(alias).filter(namespace=namespace, key=key)
    if expect_version:
        if not rows.filter(_LIVE, version=expect_version).write_row(version=F("version") + 1, **columns):
            raise _conflict(key, expect_version)
        return expect_version + 1
    with transaction.atomic(using=alias):
        replaceable = rows.filter(expires_at__lte=Now()) if expect_version == 0 else rows
        for _attempt in range(2):
            # A row keeps counting when it is replaced, so that nobody who holds its old version can match the new entry.
            if replaceable.write_row(version=F("version") + 1, **columns):
                return int(rows.values_list("version", flat=True).get())
            if _insert(model, alias, namespace, key, columns):
                return 1
            if expect_version == 0:
                break
        raise _conflict(key, expect_version or 0)


def delete(model: type[AbstractKVEntry], alias: str, namespace: str, key: str, *, expect_version: int | None = None) -> bool:
    """Delete one entry and return whether there was one; raise ``VersionConflict`` where it is not at ``expect_version``."""
    rows = model.objects.using(alias).filter(namespace=namespace, key=check_key(key))
    if expect_version is None:
        return bool(rows.live().delete()[0])
    if not rows.filter(_LIVE, version=expect_version).delete()[0]:
        raise _conflict(key, expect_version)
    return True


def purge_expired(model: type[AbstractKVEntry], alias: str, namespace: str, *, limit: int = 1000) -> int:
    """Delete at most ``limit`` entries that have expired and return how many; call it again while it returns ``limit``."""
    expired = model.objects.using(alias).filter(namespace=namespace, expires_at__lte=Now())
    ids = list(expired.order_by("expires_at").values_list("pk", flat=True)[:limit])
    # The time is asked for again: an entry that was written anew since is not expired.
    return model.objects.using(alias).filter(pk__in=ids, expires_at__lte=Now()).delete()[0]
