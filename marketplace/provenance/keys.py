"""The keys that the registry signs with: read from a file, made into one, told to others by their public halves."""

from __future__ import annotations

import hashlib
import os
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from marketplace.errors import MarketplaceError
from marketplace.models.provenance import SigningKey

PublicKey = ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey
PrivateKey = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey
_BLOCK: Final = re.compile(rb"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?-----END \1PRIVATE KEY-----", re.DOTALL)
# A file of keys has a few hundred bytes; something else may have gigabytes.
_LONGEST_FILE: Final = 64 * 1024


class SigningKeyError(MarketplaceError):
    """The file with the signing keys cannot be used, or cannot be made. Its text repeats nothing of the file."""

    code = "signing_key"


@dataclass(frozen=True)
class SigningKeys:
    """The two private keys of a registry: one for statements and heads of the log, one for the files of versions.

    OpenSSF Model Signing accepts elliptic curves alone for the latter. ``repr`` leaves out both.
    """

    statements: ed25519.Ed25519PrivateKey
    files: ec.EllipticCurvePrivateKey

    def __repr__(self) -> str:
        return f"SigningKeys({key_id(public_pem(self.statements.public_key()))[:16]})"


def read_keys(path: str | Path) -> SigningKeys:
    """Return the keys in a file made by ``write_keys``; raise ``SigningKeyError`` where it is none."""
    try:
        with Path(path).open("rb") as file:
            text = file.read(_LONGEST_FILE)
    except OSError as error:
        raise SigningKeyError(f"The signing keys in {path} cannot be read: {error.strerror}.") from error
    # One at a time, because a PEM loader reads the first block of a file alone.
    blocks = [match.group(0) for match in _BLOCK.finditer(text)]
    try:
        found = [load_pem_private_key(block, None) for block in blocks]
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # Without the cause, which may repeat what it could not parse.
        raise SigningKeyError(f"{path} has a private key that cannot be read, or one with a password.") from None
    statements = [key for key in found if isinstance(key, ed25519.Ed25519PrivateKey)]
    files = [
        key for key in found if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1)
    ]
    if len(found) != 2 or not statements or not files:
        raise SigningKeyError(
            f"{path} does not hold one Ed25519 key and one P-256 key in PEM. "
            "'manage.py signing_key create --to FILE' makes such a file."
        )
    return SigningKeys(statements[0], files[0])


def write_keys(path: Path) -> SigningKeys:
    """Make two new keys and write them into a new file that its owner alone may read, and return them.

    Raises ``SigningKeyError`` where the file exists or cannot be written; nothing of it is then left.
    """
    keys = SigningKeys(ed25519.Ed25519PrivateKey.generate(), ec.generate_private_key(ec.SECP256R1()))
    text = b"".join(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) for key in (keys.statements, keys.files)
    )
    try:
        # O_EXCL, because a key that is overwritten is lost, and a link could lead to another file.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SigningKeyError(f"{path} was not made: {error.strerror}. No key was made.") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            # Whatever the umask left of the mode.
            os.fchmod(file.fileno(), 0o600)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise SigningKeyError(f"{path} could not be written: {error.strerror}. No key was made.") from error
    return keys


def public_pem(key: PublicKey) -> str:
    """Return a public key as text: a SubjectPublicKeyInfo in PEM."""
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def key_id(pem: str) -> str:
    """Return the name of a public key: the SHA-256 (hex) of its PEM text, as ``sha256sum`` gives it for its file."""
    return hashlib.sha256(pem.encode()).hexdigest()


def load_public(pem: str) -> PublicKey:
    """Return the public key in a PEM text; raise ``SigningKeyError`` where it is none of the kinds used here."""
    try:
        key = load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SigningKeyError("It is no public key in PEM.") from error
    if not isinstance(key, (ed25519.Ed25519PublicKey, ec.EllipticCurvePublicKey)):
        raise SigningKeyError("It is a public key of another kind than Ed25519 and P-256.")
    return key


def algorithm_of(key: PublicKey) -> str:
    """Return the word for what a key signs with."""
    return SigningKey.ED25519 if isinstance(key, ed25519.Ed25519PublicKey) else SigningKey.P256


def sign(key: PrivateKey, message: bytes) -> bytes:
    """Return the signature of a message: Ed25519, or ECDSA with SHA-256 in DER."""
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key.sign(message)
    return key.sign(message, ec.ECDSA(hashes.SHA256()))


def is_signed_by(key: PublicKey, signature: bytes, message: bytes) -> bool:
    """Tell whether ``signature`` is that of ``message`` by the private half of ``key``."""
    try:
        if isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(signature, message)
        else:
            key.verify(signature, message, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def as_jwk(pem: str) -> dict[str, Any]:
    """Return a public key as a JSON Web Key (RFC 7517, RFC 8037)."""
    key = load_public(pem)
    named = {"use": "sig", "kid": key_id(pem)}
    if isinstance(key, ed25519.Ed25519PublicKey):
        raw = key.public_bytes(Encoding.Raw, PublicFormat.Raw)
        return {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "x": _url64(raw), **named}
    numbers = key.public_numbers()
    x, y = (_url64(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
    return {"kty": "EC", "crv": "P-256", "alg": "ES256", "x": x, "y": y, **named}


def _url64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
