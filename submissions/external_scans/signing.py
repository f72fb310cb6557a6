"""Sign what is sent between the registry and a scanner, and check it.

The signature is an HMAC-SHA-256 over the time in seconds, a full stop and the body. Only the standard library is
imported: a scanner uses this module as well.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

TIMESTAMP_HEADER: Final = "X-Vskill-Timestamp"
SIGNATURE_HEADER: Final = "X-Vskill-Signature"
# Seconds, in both directions: clocks differ.
VALID_FOR: Final = 300
_LONGEST_TIMESTAMP: Final = 12


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """Return the signature of ``body`` sent at ``timestamp``, as it stands in the header."""
    digest = hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256)
    return f"sha256={digest.hexdigest()}"


def signed_headers(secret: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of a signed request with a JSON body."""
    return {
        "Content-Type": "application/json",
        TIMESTAMP_HEADER: str(timestamp),
        SIGNATURE_HEADER: sign(secret, timestamp, body),
    }


def read_timestamp(text: str) -> int | None:
    """Return the seconds in a header, or ``None`` where it is no plain number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_TIMESTAMP else None


def is_signed(secret: str, timestamp: int, body: bytes, signature: str) -> bool:
    """Tell whether ``signature`` is that of ``body`` at ``timestamp``, in a time that does not depend on where it
    differs."""
    return hmac.compare_digest(sign(secret, timestamp, body).encode(), signature.encode("utf-8", "replace"))


def is_recent(timestamp: int, now: float) -> bool:
    """Tell whether what was signed at ``timestamp`` is still accepted at ``now``."""
    return abs(now - timestamp) <= VALID_FOR
