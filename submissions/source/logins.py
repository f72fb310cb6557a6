"""What is sent to a host that asks for sign-in, and where it may be sent."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from marketplace.skills.publishers import CASE_BLIND_HOSTS

_SCRUBBED: Final = b"(secret)"


@dataclass(frozen=True)
class Login:
    """A user and a secret for one ``place``: a host, or an owner or a repository on it.

    The secret is in no ``repr``, so that neither logs nor the names of snapshots can have it.
    """

    place: str
    user: str
    secret: str = field(repr=False)

    @property
    def header(self) -> str:
        """Return the value of the header ``Authorization``."""
        return f"Basic {self._encoded()}"

    def is_for(self, url: str) -> bool:
        """Tell whether this may be sent to ``url``: over https, to this very host and port, below this very path."""
        return covers(self.place, url)

    def scrub(self, text: bytes) -> bytes:
        """Return ``text`` without the secret, in whichever spelling a host may repeat it."""
        spelled = (self.secret, quote(self.secret, safe=""), self._encoded(), self._encoded().rstrip("="))
        for one in sorted({spelling.encode() for spelling in spelled}, key=len, reverse=True):
            text = text.replace(one, _SCRUBBED)
        return text

    def repeated_in(self, text: str) -> bool:
        """Tell whether ``text`` has the secret, in whichever spelling."""
        return self.scrub(text.encode("utf-8", "surrogateescape")) != text.encode("utf-8", "surrogateescape")

    def _encoded(self) -> str:
        return base64.b64encode(f"{self.user}:{self.secret}".encode()).decode("ascii")


def covers(place: str, url: str) -> bool:
    """Tell whether the https address ``url`` is on the host and port of ``place``, at or below its path."""
    parts = urlsplit(url)
    if parts.scheme != "https" or parts.username is not None:
        return False
    authority, *wanted = place.split("/")
    host = parts.hostname or ""
    named = f"[{host}]" if ":" in host else host
    if authority != (named if parts.port in (None, 443) else f"{named}:{parts.port}"):
        return False
    there = [unquote(part) for part in parts.path.split("/") if part]
    if ".." in there:
        return False
    return _comparable(host, there)[: len(wanted)] == _comparable(host, wanted)


def login_for(logins: Iterable[Login], url: str) -> Login | None:
    """Return the login for ``url`` whose place is the longest, or ``None`` where it is read without one."""
    fitting = [one for one in logins if one.is_for(url)]
    return max(fitting, key=lambda one: one.place.count("/"), default=None)


def _comparable(host: str, path: Iterable[str]) -> list[str]:
    """Return the parts of a path as they are compared: a repository is the same with and without ``.git``."""
    parts = [part.removesuffix(".git") for part in path]
    return [part.casefold() for part in parts] if host in CASE_BLIND_HOSTS else parts
