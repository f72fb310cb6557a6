"""The credentials of an environment for repositories that ask for sign-in and for a proxy, as plain values.

A credential names a secret and never holds one, so that settings can be shown and compared.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured

# GitHub's name for the user of a token. GitLab, Gitea and Forgejo take a token with any user.
TOKEN_USER: Final = "x-access-token"  # noqa: S105 - the name of a user, not a secret
_PLACE: Final = re.compile(r"(?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?P<port>:[0-9]{1,5})?(?P<path>(/[^\s/@?#]+)*)/?")
_PROXY: Final = re.compile(r"https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}/?")
_KINDS: Final = ("token", "basic")


@dataclass(frozen=True)
class SourceCredential:
    """The secret that is sent to one place.

    ``place`` is ``host``, ``host:port``, ``host/owner`` or ``host/owner/repository``; the longest that fits is used.
    ``kind`` is ``token`` or ``basic``, ``user`` the name that is sent with it, ``secret`` the name of the secret.
    """

    place: str
    kind: str
    user: str
    secret: str

    @property
    def host(self) -> str:
        """Return the host, in lower case and without port and brackets."""
        found = _PLACE.fullmatch(self.place)
        return found["host"].strip("[]") if found else ""

    @property
    def port(self) -> int | None:
        """Return the port, ``None`` for that of https."""
        found = _PLACE.fullmatch(self.place)
        return int(found["port"][1:]) if found and found["port"] else None


def read_credentials(name: str, value: Any) -> tuple[SourceCredential, ...]:
    """Return the credentials that ``source_credentials`` of the environment ``name`` describes.

    Raises ``ImproperlyConfigured``, whose text repeats no value: somebody may have written a secret there.
    """
    if not isinstance(value, Mapping):
        raise _fault(name, "maps a host, or host/owner, to an object with 'kind' and 'secret'")
    return tuple(_credential(name, str(place), options) for place, options in value.items())


def _credential(name: str, place: str, options: Any) -> SourceCredential:
    host, slash, path = place.partition("/")
    canonical = f"{host.lower().removesuffix(':443')}{slash}{path}".rstrip("/")
    if not _PLACE.fullmatch(canonical):
        raise _fault(name, "has a key that is no host, host:port or host/owner (without https:// and without a user)")
    if not isinstance(options, Mapping) or not all(isinstance(one, str) for one in options.values()):
        raise _fault(name, f"maps {place!r} to something that is no object of texts")
    kind = options.get("kind", "")
    known = {"kind", "secret", "user"}
    if kind not in _KINDS:
        raise _fault(name, f"gives {place!r} no 'kind' that is known: {' or '.join(_KINDS)}")
    if unknown := set(options) - known:
        raise _fault(name, f"gives {place!r} {len(unknown)} unknown options; known: {', '.join(sorted(known))}")
    user = options.get("user", TOKEN_USER if kind == "token" else "")
    if not user or ":" in user or not user.isprintable():
        raise _fault(name, f"gives {place!r} no 'user' that can be sent: it has no colon and no control character")
    return SourceCredential(canonical, kind, user, options.get("secret", ""))


def is_proxy(url: str) -> bool:
    """Tell whether ``url`` is the address of a proxy: http or https, a host, a port, and no user."""
    return _PROXY.fullmatch(url) is not None


def read_proxy(name: str, url: str) -> str:
    """Return the address of the proxy of the environment ``name``, or ''; raise ``ImproperlyConfigured``.

    What is raised does not repeat the address, which may hold a password.
    """
    if url and not is_proxy(url):
        raise ImproperlyConfigured(
            f"'source_proxy' of {name!r} is no address as http://proxy.example.org:3128, with a port and without a "
            "user. A user and password for it are the secret 'source_proxy' (VSKILL_SOURCE_PROXY_LOGIN)."
        )
    return url.rstrip("/")


def check_secrets(name: str, credentials: Collection[SourceCredential], secrets: Mapping[str, str]) -> None:
    """Raise ``ImproperlyConfigured`` where a credential names no secret of the environment, or one that is no text."""
    login = secrets.get("source_proxy")
    if login is not None and not (login.isprintable() and login.isascii() and login.partition(":")[2]):
        raise ImproperlyConfigured(
            f"The secret 'source_proxy' of {name!r} is not user:password in plain letters, digits and signs."
        )
    for one in credentials:
        if one.secret not in secrets:
            known = ", ".join(sorted(secrets)) or "none"
            raise _fault(
                name,
                f"gives {one.place!r} a 'secret' that is not among the 'secrets' of the environment (it has: {known}); "
                "write the name of a secret there, never the secret itself",
            )
        if not secrets[one.secret] or not secrets[one.secret].isprintable():
            raise _fault(
                name,
                f"uses the secret {one.secret!r}, whose variable is empty or has a line break or a control character",
            )


def _fault(name: str, what: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"VSKILL_ENVIRONMENTS: 'source_credentials' of {name!r} {what}.")
