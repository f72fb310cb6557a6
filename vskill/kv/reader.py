"""Read keys in chunks, and let one bad row cost no more than itself.

A chunk is one select. When it fails, the chunk is halved until the rows that cannot be read stand alone: two bad rows among
twenty thousand cost those two. Halving has a budget, and a database that does not answer is one failure and not five hundred.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.db import DatabaseError, InterfaceError, connections, models
from django.db.models import Case, Q, Value, When
from django.db.models.functions import Now

from vskill.kv.codec import decode
from vskill.kv.models import AbstractKVEntry
from vskill.kv.outcomes import Outcome, Status
from vskill.kv.probe import probe

CHUNK_SIZE: Final = 500
# Finding one bad row of a chunk takes 2 * log2(500) = 18 selects; this is enough for about ten of them.
BISECT_BUDGET: Final = 200

_EXPIRED: Final = Case(
    When(Q(expires_at__isnull=False) & Q(expires_at__lte=Now()), then=Value(True)),
    default=Value(False),
    output_field=models.BooleanField(),
)
_COLUMNS: Final = ("key", "value", "version", "metadata", _EXPIRED)
_Row = tuple[str, str, int, str, bool]


def _select(model: type[AbstractKVEntry], alias: str, namespace: str, keys: Sequence[str]) -> list[_Row]:
    with probe.selecting():
        rows = model.objects.using(alias).filter(namespace=namespace, key__in=keys).values_list(*_COLUMNS)  # type: ignore[misc]
        return list(rows)  # type: ignore[arg-type]


def decode_row(row: _Row) -> Outcome:
    """Return the outcome of a row that could be read: a value, expired, or malformed."""
    key, text, version, metadata, expired = row
    if expired:
        return Outcome(key, Status.EXPIRED)
    try:
        value = decode(text)
        described = decode(metadata) if metadata != "{}" else {}
    except ValueError as error:
        return Outcome(key, Status.MALFORMED, version=version, detail=str(error))
    if not isinstance(described, dict):
        return Outcome(key, Status.MALFORMED, version=version, detail="its metadata is not an object")
    return Outcome(key, Status.VALUE, value, version, described)


def _answers(alias: str) -> bool:
    connection = connections[alias]
    try:
        connection.ensure_connection()
        return bool(connection.is_usable())
    except DatabaseError:
        return False


def _halves(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    middle = len(keys) // 2
    yield keys[:middle]
    yield keys[middle:]


class _ChunkReader:
    """One chunk: its rows, and what could not be read with the reason."""

    def __init__(self, model: type[AbstractKVEntry], alias: str, namespace: str) -> None:
        self._model = model
        self._alias = alias
        self._namespace = namespace
        self._budget = BISECT_BUDGET
        self.outcomes: dict[str, Outcome] = {}

    def read(self, keys: Sequence[str]) -> None:
        try:
            rows = _select(self._model, self._alias, self._namespace, keys)
        except (DatabaseError, InterfaceError, UnicodeDecodeError, ValueError) as error:
            self._after_failure(keys, error)
            return
        for row in rows:
            self.outcomes[row[0]] = decode_row(row)
        for key in keys:
            if key not in self.outcomes:
                self.outcomes[key] = Outcome(key, Status.MISSING)

    def _after_failure(self, keys: Sequence[str], error: Exception) -> None:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if len(keys) == 1 or self._budget <= 0 or not _answers(self._alias):
            for key in keys:
                self.outcomes[key] = Outcome(key, Status.UNREADABLE, detail=reason)
            return
        self._budget -= 2
        for half in _halves(keys):
            self.read(half)


def read_chunk(model: type[AbstractKVEntry], alias: str, namespace: str, keys: Sequence[str]) -> dict[str, Outcome]:
    """Return the outcome of each of at most ``CHUNK_SIZE`` keys, read now, on the connection of this thread.

    Never raises for a row: a row that cannot be read is ``UNREADABLE``, with the database's reason in ``detail``.
    """
    chunk = _ChunkReader(model, alias, namespace)
    chunk.read(keys)
    return chunk.outcomes
