"""Envelopes of the Dead Simple Signing Envelope (DSSE 1.0): a payload of some type, and signatures over both."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any, Final

from marketplace.errors import MarketplaceError
from marketplace.provenance.keys import PrivateKey, PublicKey, is_signed_by, key_id, public_pem, sign

IN_TOTO: Final = "application/vnd.in-toto+json"


class BadSignature(MarketplaceError):
    """Something is not signed by the key that it is said to be signed by, or is no signature at all."""

    code = "bad_signature"


def encoded(payload: bytes) -> bytes:
    """Return what is signed of an in-toto ``payload``: DSSE's pre-authentication encoding of it and its type."""
    kind = IN_TOTO.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def envelope(payload: dict[str, Any], key: PrivateKey, *, keyid: str | None = None) -> dict[str, Any]:
    """Return the envelope of an in-toto statement, signed; ``keyid`` is by default the name of the key."""
    content = json.dumps(payload, separators=(",", ":"), sort_keys=True).encode()
    name = key_id(public_pem(key.public_key())) if keyid is None else keyid
    return {
        "payload": b64encode(content).decode(),
        "payloadType": IN_TOTO,
        "signatures": [{"keyid": name, "sig": b64encode(sign(key, encoded(content))).decode()}],
    }


def opened(sealed: Any, key: PublicKey) -> dict[str, Any]:
    """Return the statement in an envelope that ``key`` signed; raise ``BadSignature`` where it did not."""
    try:
        payload = b64decode(sealed["payload"], validate=True)
        signature = b64decode(sealed["signatures"][0]["sig"], validate=True)
        kind = sealed["payloadType"]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise BadSignature("It is no signed envelope.") from error
    if kind != IN_TOTO or not is_signed_by(key, signature, encoded(payload)):
        raise BadSignature("The key did not sign this.")
    statement: dict[str, Any] = json.loads(payload)
    return statement
