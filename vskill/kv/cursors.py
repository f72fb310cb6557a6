"""The text of a keyset cursor: what list it belongs to, and the position after which it continues."""

from __future__ import annotations

import base64
import json
from typing import Any


def encode_cursor(binding: str, *position: Any) -> str:
    """Return a cursor as text: unpadded URL-safe base64 of the JSON array ``[binding, *position]``.

    ``binding`` is a digest of what defines the list (environment, filters, order), ``position`` the JSON values that
    the query continues after.
    """
    text = json.dumps([binding, *position], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> list[Any]:
    """Return ``[binding, *position]`` of a cursor; raise ``ValueError`` for text that no cursor has.

    Clients send cursors back and can forge them, so the caller still has to check the binding and the number, type
    and range of the values.
    """
    try:
        parts = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(parts, list):
        raise ValueError("not a JSON array")
    return parts
