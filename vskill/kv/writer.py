"""Write entries: each function is one compare-and-set, run synchronously on the connection of the calling thread.

The functions may be called inside a larger transaction (of a submission and its queue message, say); one that fails
leaves that transaction usable. Asynchronous callers use ``KVNamespace``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from typing import Any

from django.db import connections, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from vskill.kv.clock import check_expiry
from vskill.kv.codec import check_key, decode, encode, is_storable
from vskill.kv.errors import InvalidValue, ProjectedColumn, VersionConflict
from vskill.kv.models import AbstractKVEntry
from vskill.kv.statements import Statements, statements


def _conflict(key: str, expected: int) -> VersionConflict:
    wanted = "not to exist" if expected == 0 else f"at version {expected}"
    return VersionConflict(
        f"{key!r} was expected {wanted}, and another writer was first. Nothing was written: read it again."
    )


def _savepoint(alias: str) -> AbstractContextManager[Any]:
    # An error aborts the whole transaction on PostgreSQL, and a caller that handles the error still needs it.
    return transaction.atomic(using=alias) if connections[alias].in_atomic_block else nullcontext()


def projection(model: type[AbstractKVEntry], text: str) -> dict[str, Any]:
    """Return the projected columns of the value whose JSON is ``text``.

    Raises ``InvalidValue`` where one of them is a text that some database cannot store, and ``ProjectedColumn`` where
    ``model.project`` returns other columns than ``projected_columns`` lists.
    """
    if not model.projected_columns:
        return {}
    # From the JSON and not from the value before encoding, because readers will see the JSON.
    columns = model.project(decode(text))
    if columns.keys() != set(model.projected_columns):
        raise ProjectedColumn(f"{model.__name__}.project() gives {sorted(columns)}, and not its projected_columns.")
    for column, projected in columns.items():
        if isinstance(projected, str) and not is_storable(projected):
            raise InvalidValue(f"The value has a character in {column!r} that no database can hold: {projected!a}.")
    return columns


def _expiry(
    sql: Statements, alias: str, expires_at: datetime | None, ttl: timedelta | None
) -> tuple[str, dict[str, Any]]:
    """Return the SQL of the time of expiry, and its named parameter."""
    check_expiry(expires_at, ttl)
    if ttl is not None:
        return sql.expiry_after(ttl)
    return "%(expires_at)s", {"expires_at": sql.column("expires_at", expires_at, alias)}


def _named(columns: Iterable[str]) -> dict[str, str]:
    """Return the SQL for each of ``columns``: a placeholder of the same name."""
    return {column: f"%({column})s" for column in columns}


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

    ``model`` is the table, ``alias`` its database, and ``namespace`` the name of the environment. The write replaces
    the whole entry, with its metadata and expiry. ``ttl`` counts from the present time of the database's clock.
    ``expect_version`` is the version that has to be there: 0 for no entry, which an expired one is, and ``None`` for
    any. Raises ``VersionConflict`` with nothing written, ``InvalidKey``, ``InvalidValue``, and ``IntegrityError``
    where the row would break a constraint of ``model``.
    """
    check_key(key)
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidValue("Metadata is an object of names and values.")
    connection = connections[alias]
    sql = statements(model, connection.vendor)
    text = encode(value)
    projected = projection(model, text)
    expiry, expires = _expiry(sql, alias, expires_at, ttl)
    given = {column: sql.column(column, projected[column], alias) for column in projected}
    given |= {"value": text, "metadata": encode(dict(metadata or {}))}
    changed = {**_named(given), "expires_at": expiry, "updated_at": sql.now}
    parameters = {**given, **expires, "namespace": namespace, "key": key}
    if expect_version:
        with _savepoint(alias), connection.cursor() as cursor:
            cursor.execute(sql.update(changed), {**parameters, "expect_version": expect_version})
            if cursor.rowcount != 1:
                raise _conflict(key, expect_version)
        return expect_version + 1
    first = {column: sql.column(column, default, alias) for column, default in sql.defaults.items()}
    first["version"] = 1
    inserted = {**changed, **_named(["namespace", "key", *first]), "created_at": sql.now}
    statement = sql.upsert(inserted, list(changed), only_expired=expect_version == 0)
    with _savepoint(alias), connection.cursor() as cursor:
        cursor.execute(statement, {**parameters, **first})
        written = cursor.fetchall()
    if not written:
        raise _conflict(key, 0)
    return int(written[0][0])


def _delete_locked(model: type[AbstractKVEntry], alias: str, rows: QuerySet[AbstractKVEntry]) -> int:
    """Delete ``rows`` with all rows that refer to them, and return how many of ``rows`` were deleted.

    They are locked first. Django reads the referring rows before it deletes, and without the lock another writer could
    replace an entry in between, so that the new one would be deleted.
    """
    with transaction.atomic(using=alias):
        ids = list(rows.select_for_update().values_list("pk", flat=True))
        if ids:
            # Only the primary key is read, so that an unreadable row can be deleted.
            model.objects.using(alias).filter(pk__in=ids).only("pk").delete()
        return len(ids)


def delete(
    model: type[AbstractKVEntry], alias: str, namespace: str, key: str, *, expect_version: int | None = None
) -> bool:
    """Delete one entry and return whether it existed; ``model``, ``alias`` and ``namespace`` are those of ``put``.

    Raises ``VersionConflict`` where the entry is not at ``expect_version``, unless that is ``None``. A key that is
    written again later starts at version 1, so a compare-and-set cannot tell the new entry from the old one.
    """
    rows = model.objects.using(alias).live().filter(namespace=namespace, key=check_key(key))
    if expect_version is None:
        return bool(_delete_locked(model, alias, rows))
    if _delete_locked(model, alias, rows.filter(version=expect_version)):
        return True
    if expect_version == 0 and not rows.exists():
        return False
    raise _conflict(key, expect_version)


def purge_expired(model: type[AbstractKVEntry], alias: str, namespace: str, *, limit: int = 1000) -> int:
    """Delete at most ``limit`` expired entries and return their number; 0 when none is left.

    ``model``, ``alias`` and ``namespace`` are those of ``put``.
    """
    expired = model.objects.using(alias).filter(namespace=namespace, expires_at__lte=Now())
    return _delete_locked(model, alias, expired.order_by("expires_at")[:limit])
