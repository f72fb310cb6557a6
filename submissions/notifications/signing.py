"""The secret of a webhook, and the headers that it signs, by the Standard Webhooks scheme.

A secret is shown once. It is stored encrypted with a key that is made from the secret key of the installation, because
signing needs it again: whoever has the database alone cannot sign.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Final

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from submissions.notifications.errors import SecretUnreadable

PREFIX: Final = "whsec_"
_BYTES: Final = 32
_PURPOSE: Final = b"vskill: secrets of outgoing webhooks"


def new_secret() -> str:
    """Return a new secret, as receivers enter it: ``whsec_`` and 32 random bytes in Base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(_BYTES)).decode()


def sealed(secret: str) -> str:
    """Return ``secret`` as it is stored."""
    return _cipher().encrypt(secret.encode()).decode()


def opened(stored: str) -> str:
    """Return the secret that is ``stored``; raise ``SecretUnreadable`` where another key has sealed it."""
    try:
        return _cipher().decrypt(stored.encode()).decode()
    except InvalidToken:
        raise SecretUnreadable(
            "The secret of this webhook was stored under another VSKILL_SECRET_KEY. Nothing was sent: rotate the "
            "secret, and give its receiver the new one."
        ) from None


def _cipher() -> Fernet:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(settings.SECRET_KEY.encode())
    return Fernet(base64.urlsafe_b64encode(derived))


def signed_headers(secrets_of_it: Sequence[str], key: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of a delivery: its id, the time in seconds, and the signatures of both and the ``body``.

    ``key`` is the id of the delivery, which is the same at each attempt. Each secret gives a signature, and a receiver
    that knows one of them takes it.
    """
    signed = f"{key}.{timestamp}.".encode() + body
    return {
        "Content-Type": "application/json",
        "webhook-id": key,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{_signature(secret, signed)}" for secret in secrets_of_it),
    }


def _signature(secret: str, signed: bytes) -> str:
    code = hmac.new(base64.b64decode(secret.removeprefix(PREFIX)), signed, hashlib.sha256).digest()
    return base64.b64encode(code).decode()
