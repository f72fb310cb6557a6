"""Which secret signs the webhooks of which git host, owner or repository, as plain values from the settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured

# The secret of an environment for every place without one of its own.
WEBHOOKS: Final = "webhooks"
_PLACE: Final = re.compile(r"([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?(/[^\s/@?#]+)*/?")


@dataclass(frozen=True)
class WebhookSecret:
    """The name of the secret with which webhooks about one place are signed.

    ``place`` is ``host``, ``host:port``, ``host/owner`` or ``host/owner/repository``; the longest that fits is used.
    """

    place: str
    secret: str


def read_webhook_secrets(name: str, value: Any) -> tuple[WebhookSecret, ...]:
    """Return what ``webhook_secrets`` of the environment ``name`` describes.

    Raises ``ImproperlyConfigured``, whose text repeats no value: somebody may have written a secret there.
    """
    if not isinstance(value, Mapping):
        raise _fault(name, "maps a host, or host/owner, to the name of a secret")
    found = []
    for place, secret in value.items():
        host, slash, path = str(place).partition("/")
        canonical = f"{host.lower().removesuffix(':443')}{slash}{path}".rstrip("/")
        if not _PLACE.fullmatch(canonical):
            raise _fault(name, "has a key that is no host, host:port or host/owner (without https:// and a user)")
        if not isinstance(secret, str):
            raise _fault(name, f"maps {canonical!r} to something that is no name of a secret")
        found.append(WebhookSecret(canonical, secret))
    return tuple(found)


def check_webhook_secrets(name: str, wanted: tuple[WebhookSecret, ...], secrets: Mapping[str, str]) -> None:
    """Raise ``ImproperlyConfigured`` where a place names no secret of the environment ``name``, or one is empty.

    ``wanted`` is what ``webhook_secrets`` says, and ``secrets`` are those of the environment.
    """
    for one in wanted:
        if one.secret not in secrets:
            known = ", ".join(sorted(secrets)) or "none"
            raise _fault(
                name,
                f"gives {one.place!r} a secret that is not among the 'secrets' of the environment (it has: {known}); "
                "write the name of a secret there, never the secret itself",
            )
    for secret in {WEBHOOKS, *(one.secret for one in wanted)} & secrets.keys():
        # GitLab writes this before what it signs with.
        if not secrets[secret].removeprefix("whsec_") or not secrets[secret].isprintable():
            raise _fault(name, f"uses the secret {secret!r}, whose variable is empty or has a control character")


def _fault(name: str, what: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"VSKILL_ENVIRONMENTS: 'webhook_secrets' of {name!r} {what}.")
