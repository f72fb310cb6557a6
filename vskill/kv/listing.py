"""List keys by prefix: a half-open range over bytes, page by page."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Final

from vskill.kv.codec import decode, prefix_end
from vskill.kv.errors import InvalidCursor
from vskill.kv.models import AbstractKVEntry

MAX_PAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class ListedKey:
    """One key of a listing; ``metadata`` is ``None`` where it cannot be read."""

    name: str
    metadata: dict[str, Any] | None = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeyPage:
    """A page of keys in bytewise order; ``cursor`` continues it and is ``None`` when ``list_complete``."""

    keys: tuple[ListedKey, ...]
    list_complete: bool
    cursor: str | None = None


def _binding(namespace: str, prefix: str) -> str:
    return hashlib.sha256(f"{namespace}\0{prefix}".encode()).hexdigest()[:16]


def make_cursor(namespace: str, prefix: str, last_key: str) -> str:
    """Return the cursor that continues the listing of ``prefix`` after ``last_key``."""
    text = json.dumps([_binding(namespace, prefix), last_key], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(namespace: str, prefix: str, cursor: str) -> str:
    """Return the key after which ``cursor`` continues; raise ``InvalidCursor`` for one of another listing or of none."""
    try:
        binding, last_key = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError, TypeError) as error:
        raise InvalidCursor("This is not a cursor. Start the listing again without one.") from error
    if binding != _binding(namespace, prefix) or not isinstance(last_key, str):
        raise InvalidCursor("This cursor belongs to another listing. Start again without one.")
    return last_key


def list_keys(
    model: type[AbstractKVEntry], alias: str, namespace: str, *, prefix: str = "", limit: int = MAX_PAGE, cursor: str | None = None
) -> KeyPage:
    """Return one page of the keys that start with ``prefix`` and have not expired.

    The page starts after the key that the cursor names, so keys that are written or deleted meanwhile neither repeat nor hide
    another. ``limit`` is cut to 1 to ``MAX_PAGE``.
    """
    limit = max(1, min(limit, MAX_PAGE))
    rows = model.objects.using(alias).live().filter(namespace=namespace)
    if cursor:
        rows = rows.filter(key__gt=read_cursor(namespace, prefix, cursor))
    if prefix:
        rows = rows.filter(key__gte=prefix)
        if (end := prefix_end(prefix)) is not None:
            rows = rows.filter(key__lt=end)
    page = list(rows.order_by("key").values_list("key", "metadata")[: limit + 1])
    complete = len(page) <= limit
    keys = tuple(ListedKey(key, _metadata(text)) for key, text in page[:limit])
    return KeyPage(keys, complete, None if complete else make_cursor(namespace, prefix, keys[-1].name))


def _metadata(text: str) -> dict[str, Any] | None:
    if text == "{}":
        return {}
    try:
        value = decode(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
