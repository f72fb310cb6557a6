"""Tell whether a webhook is signed with a secret, in the way of each git host.

GitHub: HMAC-SHA-256 of the body in ``X-Hub-Signature-256``. Gitea and Forgejo: the same in ``X-Gitea-Signature`` or
``X-Forgejo-Signature``. GitLab: the signature of Standard Webhooks over id, time and body where it sends one, or the
secret itself in ``X-Gitlab-Token``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

# Seconds, in both directions: clocks differ.
VALID_FOR: Final = 300
_KEY_PREFIX: Final = "whsec_"
_MOST_SIGNATURES: Final = 5


class Sender(StrEnum):
    """A kind of git host; Forgejo sends what Gitea does."""

    GITHUB = "github"
    GITLAB = "gitlab"
    GITEA = "gitea"


@dataclass(frozen=True)
class Delivery:
    """A webhook as it arrived: who it says it is from, its headers and its body."""

    sender: Sender
    headers: Mapping[str, str]
    body: bytes

    def header(self, *names: str) -> str:
        """Return the first of these headers that was sent, '' where none was."""
        return next((self.headers[name] for name in names if self.headers.get(name)), "")

    @property
    def event(self) -> str:
        """Return what it is about, in the words of its host."""
        return self.header(*_EVENT[self.sender])

    @property
    def once(self) -> bytes:
        """Return what tells it from every other one that is signed: the ids of GitHub and Gitea are not.

        Their signature, which says no more than the body, is shorter than a push of megabytes; ``is_signed`` took it,
        so it is exactly what was to be sent. GitLab may send several, any of which is enough.
        """
        if self.sender is Sender.GITLAB:
            ids = ("webhook-id", "Idempotency-Key", "X-Gitlab-Event-UUID")
            return self.header(*ids).encode("utf-8", "replace") + b"\0" + self.body
        return self.header(*_SIGNATURE[self.sender]).encode("utf-8", "replace")


_SIGNATURE: Final = {
    Sender.GITHUB: ("X-Hub-Signature-256",),
    Sender.GITEA: ("X-Forgejo-Signature", "X-Gitea-Signature"),
}
_EVENT: Final = {
    Sender.GITHUB: ("X-GitHub-Event",),
    Sender.GITLAB: ("X-Gitlab-Event",),
    Sender.GITEA: ("X-Gitea-Event", "X-Forgejo-Event"),
}


def is_signed(delivery: Delivery, secret: str, now: float) -> bool:
    """Tell whether ``delivery`` is signed with ``secret``, in a time that does not depend on where it differs.

    ``now`` is in seconds; a signature that names a time more than ``VALID_FOR`` away from it is none.
    """
    return _CHECKS[delivery.sender](delivery, secret, now)


def _github(delivery: Delivery, secret: str, _now: float) -> bool:
    return _equal(f"sha256={_hex(secret, delivery.body)}", delivery.header(*_SIGNATURE[Sender.GITHUB]))


def _gitea(delivery: Delivery, secret: str, _now: float) -> bool:
    return _equal(_hex(secret, delivery.body), delivery.header(*_SIGNATURE[Sender.GITEA]))


def _gitlab(delivery: Delivery, secret: str, now: float) -> bool:
    signatures = delivery.header("webhook-signature")
    if not signatures:
        return _equal(secret, delivery.header("X-Gitlab-Token"))
    sent_at = delivery.header("webhook-timestamp")
    if not (sent_at.isascii() and sent_at.isdigit() and len(sent_at) <= 12) or abs(now - int(sent_at)) > VALID_FOR:
        return False
    signed = f"{delivery.header('webhook-id')}.{sent_at}.".encode("utf-8", "replace") + delivery.body
    digest = hmac.new(_standard_key(secret), signed, hashlib.sha256).digest()
    wanted = f"v1,{base64.b64encode(digest).decode('ascii')}"
    # Several while a secret is replaced. Each is compared, so that the time tells nothing.
    return sum(_equal(wanted, one) for one in signatures.split()[:_MOST_SIGNATURES]) > 0


def _standard_key(secret: str) -> bytes:
    if secret.startswith(_KEY_PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(_KEY_PREFIX), validate=True)
        except binascii.Error:
            return secret.encode()
    return secret.encode()


def _hex(secret: str, body: bytes) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def _equal(wanted: str, sent: str) -> bool:
    return hmac.compare_digest(wanted.encode(), sent.encode("utf-8", "replace"))


_CHECKS: Final[Mapping[Sender, Callable[[Delivery, str, float], bool]]] = {
    Sender.GITHUB: _github,
    Sender.GITLAB: _gitlab,
    Sender.GITEA: _gitea,
}
