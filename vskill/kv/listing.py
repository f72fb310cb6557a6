"""List keys by prefix: a half-open range over bytes, page by page."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import connections

from vskill.kv.codec import check_key, check_prefix, decode, prefix_end
from vskill.kv.cursors import decode_cursor, encode_cursor
from vskill.kv.errors import InvalidCursor, InvalidKey
from vskill.kv.models import AbstractKVEntry
from vskill.kv.reader import CHUNK_SIZE, READ_FAILURES, read_chunk
from vskill.kv.statements import statements

logger = logging.getLogger(__name__)

MAX_PAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class ListedKey:
    """One key of a listing; ``metadata`` is ``None`` where it cannot be read."""

    name: str
    metadata: dict[str, Any] | None = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeyPage:
    """A page of keys in bytewise order; ``cursor`` continues it and is ``None`` when ``list_complete``.

    ``unreadable`` counts keys within the page that are no UTF-8, which SQLite can hold, and so have no name.
    """

    keys: tuple[ListedKey, ...]
    list_complete: bool
    cursor: str | None = None
    unreadable: int = 0


def _binding(namespace: str, prefix: str) -> str:
    return hashlib.sha256(f"{namespace}\0{prefix}".encode()).hexdigest()[:16]


def make_cursor(namespace: str, prefix: str, last_key: str) -> str:
    """Return the cursor that continues the listing of ``prefix`` after ``last_key``."""
    return encode_cursor(_binding(namespace, prefix), last_key)


def read_cursor(namespace: str, prefix: str, cursor: str) -> str:
    """Return the key after which ``cursor`` continues.

    Raises ``InvalidCursor`` for the cursor of another listing and for text that is no cursor.
    """
    try:
        binding, last_key = decode_cursor(cursor)
        check_key(last_key)
    except (ValueError, TypeError, AttributeError, InvalidKey) as error:
        raise InvalidCursor("This is not a cursor. Start the listing again without one.") from error
    if binding != _binding(namespace, prefix):
        raise InvalidCursor("This cursor belongs to another listing. Start again without one.")
    return str(last_key)


class _Page:
    """The range of one page, and the ways to read it."""

    def __init__(
        self, model: type[AbstractKVEntry], alias: str, namespace: str, prefix: str, last_key: str | None
    ) -> None:
        self._model = model
        self._connection = connections[alias]
        self._statements = statements(model, self._connection.vendor)
        self._namespace = namespace
        self._after = last_key is not None
        self._range = {
            "namespace": namespace,
            "start": prefix if last_key is None else last_key,
            "end": prefix_end(prefix),
        }

    def select(self, columns: str, limit: int, *, live: bool = True) -> list[tuple[Any, ...]]:
        has_end = self._range["end"] is not None
        statement = self._statements.page(columns, after=self._after, end=has_end, live=live)
        with self._connection.cursor() as cursor:
            cursor.execute(statement, {**self._range, "limit": limit})
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def select_names(self, limit: int) -> list[str | None]:
        """Return the keys alone, ``None`` for one that is no UTF-8."""
        if self._connection.vendor != "sqlite":
            return [key for (key,) in self.select('"key"', limit)]
        names: list[str | None] = []
        for (raw,) in self.select('CAST("key" AS BLOB)', limit):
            try:
                names.append(bytes(raw).decode())
            except UnicodeDecodeError:
                names.append(None)
        return names

    def rescue(self, limit: int) -> tuple[list[ListedKey], int, bool]:
        """Read what can be read of a page with a bad row: its keys, how many have no name, and whether it is complete.

        A page that goes on must end with a key that has a name, because the cursor continues after that.
        """
        size = limit
        while True:
            names = self.select_names(size + 1)
            complete = len(names) <= size
            if complete or names[size - 1] is not None:
                break
            size += limit
        keys = [name for name in names[:size] if name is not None]
        described: dict[str, dict[str, Any] | None] = {}
        for start in range(0, len(keys), CHUNK_SIZE):
            chunk = keys[start : start + CHUNK_SIZE]
            for outcome in read_chunk(self._model, self._connection.alias, self._namespace, chunk).values():
                described[outcome.key] = outcome.metadata if outcome.found else None
        return [ListedKey(key, described[key]) for key in keys], names[:size].count(None), complete


def list_keys(
    model: type[AbstractKVEntry],
    alias: str,
    namespace: str,
    *,
    prefix: str = "",
    limit: int = MAX_PAGE,
    cursor: str | None = None,
) -> KeyPage:
    """Return one page of the keys that start with ``prefix`` and have not expired.

    The page starts after the key that the cursor names, so keys that are written or deleted meanwhile neither repeat
    nor hide another. ``limit`` is cut to 1 to ``MAX_PAGE``.
    """
    check_prefix(prefix)
    limit = max(1, min(limit, MAX_PAGE))
    page = _Page(model, alias, namespace, prefix, read_cursor(namespace, prefix, cursor) if cursor else None)
    unreadable = 0
    try:
        rows = page.select('"key", "metadata"', limit + 1)
    except READ_FAILURES:
        # Where the database itself is away this raises the same again.
        keys, unreadable, complete = page.rescue(limit)
    else:
        complete = len(rows) <= limit
        keys = [ListedKey(key, _metadata(text)) for key, text in rows[:limit]]
    following = None if complete else make_cursor(namespace, prefix, keys[-1].name)
    return KeyPage(tuple(keys), complete, following, unreadable)


def list_names(
    model: type[AbstractKVEntry],
    alias: str,
    namespace: str,
    prefix: str,
    after: str | None,
    limit: int,
    *,
    live: bool = True,
) -> tuple[list[str], bool]:
    """Return at most ``limit`` keys of ``prefix`` that follow ``after``, and whether these are the last.

    The same keys as ``list_keys`` gives, without what it says about them; where they need not be ``live``, expired ones
    may be among them, and the index tells all.
    """
    page = _Page(model, alias, namespace, check_prefix(prefix), after)
    try:
        names = [name for (name,) in page.select('"key"', limit + 1, live=live)]
    except READ_FAILURES:
        keys, unreadable, complete = page.rescue(limit)
        if unreadable:
            logger.error("%d keys of %r are no UTF-8 and cannot be read", unreadable, namespace)
        return [key.name for key in keys], complete
    return names[:limit], len(names) <= limit


def _metadata(text: str) -> dict[str, Any] | None:
    if text == "{}":
        return {}
    try:
        value = decode(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
