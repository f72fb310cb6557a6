"""The text of a keyset cursor: what list it belongs to, and the position after which it continues."""

from __future__ import annotations

import base64
import json
from hmac import compare_digest
from typing import Any, Final

from django.utils.crypto import salted_hmac

_SALT: Final = "vskill.kv.cursors"
_SIGNATURE_BYTES: Final = 12


def encode_cursor(binding: str, *position: Any) -> str:
    """Return a cursor as text: unpadded URL-safe base64 of a signature and the JSON array ``[binding, *position]``.

    ``binding`` is a digest of what defines the list (environment, filters, order), ``position`` the JSON values that
    the query continues after.
    """
    text = json.dumps([binding, *position], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_signature(text) + text).decode().rstrip("=")


def decode_cursor(cursor: str) -> list[Any]:
    """Return ``[binding, *position]`` of a cursor; raise ``ValueError`` for text that was not made here.

    Clients send cursors back. The signature shows that one was made here, but not for which list, so the caller still
    has to check the binding and the values.
    """
    signed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    text = signed[_SIGNATURE_BYTES:]
    if not compare_digest(_signature(text), signed[:_SIGNATURE_BYTES]):
        raise ValueError("not signed here")
    try:
        parts = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(parts, list):
        raise ValueError("not a JSON array")
    return parts


def _signature(text: bytes) -> bytes:
    # With SECRET_KEY.
    return salted_hmac(_SALT, text, algorithm="sha256").digest()[:_SIGNATURE_BYTES]
