"""Write out the short spellings of an address: ``owner/repository``, ``gitlab:group/project``, ``git@host:path``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from marketplace.skills.publishers import full_address
from submissions.source.errors import EXAMPLE, NAMES_A_USER, InvalidRepositoryURL
from submissions.source.places import folder

_HOSTS: Final = {"github:": "github.com", "gitlab:": "gitlab.com", "bitbucket:": "bitbucket.org"}
# git@host:owner/repository, as hosts show it beside https.
_SCP_LIKE: Final = re.compile(r"(?:(?P<user>[^\s/@]+)@)?(?P<host>[A-Za-z0-9.-]+\.[A-Za-z]+):(?P<path>[^\s/:][^\s:]*)")
_SSH: Final = re.compile(
    r"(?:git\+)?ssh://(?:(?P<user>[^\s/@]*)@)?(?P<host>[^\s/@:]+)(?::(?P<port>\d*))?/(?P<path>\S+)", re.IGNORECASE
)
# owner/repository/folder and owner/repository@skill, as the skills client takes them.
_ON_GITHUB: Final = re.compile(
    r"(?P<repository>[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100})(?P<path>(?:/[^/@:?]+)*)/?(?:@(?P<skill>[^/@:?]+))?"
)
_SSH_PORT: Final = 22
_SCHEME: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://?")
# A user, password or token before the host, in an address whose scheme is missing or broken.
_USER: Final = re.compile(r"(?:[a-z]+:)?/*[^/]+@", re.IGNORECASE)
_PAGES: Final = frozenset({"tree", "blob", "raw", "blame", "commit", "commits", "releases"})


@dataclass(frozen=True)
class Written:
    """An address with its scheme (https or file), and the folder and the skill that only a short spelling names."""

    address: str
    path: str = ""
    skill: str = ""


def _no_key(_user: str, _host: str, _port: int) -> bool:
    return False


def write_out(text: str, opens: Callable[[str, str, int], bool] = _no_key) -> Written:
    """Return the whole address that ``text`` is short for; raise InvalidRepositoryURL for a scheme that is not fetched.

    ``text`` has no fragment. An address for ssh becomes that for https on the same host, by which a repository is known
    however it is read. Its user is ``git`` and its port 22, unless ``opens`` (user, host, port) knows a key for them.
    """
    for prefix, host in _HOSTS.items():
        if text.lower().startswith(prefix) and not text.startswith("//", len(prefix)):
            rest = text[len(prefix) :].lstrip("/")
            text = rest if host == "github.com" else f"https://{host}/{rest}"
    short = _ON_GITHUB.fullmatch(text)
    if short is not None:
        parts = [part for part in short["path"].split("/") if part]
        if not parts or parts[0] not in _PAGES:
            return Written(f"https://github.com/{short['repository']}", folder(parts), short["skill"] or "")
        return Written(f"https://github.com/{text}")
    text = _over_https(full_address(text), opens)
    match = _SCHEME.match(text)
    if match is None:
        named = _USER.match(text) is not None
        raise InvalidRepositoryURL(NAMES_A_USER if named else f"That is not a repository address. {EXAMPLE}")
    scheme = match["scheme"].lower()
    if scheme == "http":
        raise InvalidRepositoryURL("Repositories are fetched over https only; replace http:// by https://.")
    if scheme not in {"https", "file"}:
        raise InvalidRepositoryURL(f"Repositories are fetched over https only, not {scheme[:20]}. {EXAMPLE}")
    return Written(text)


def _over_https(text: str, opens: Callable[[str, str, int], bool]) -> str:
    if text.lower().startswith("git+https://"):
        return text[len("git+") :]
    match = _SSH.fullmatch(text) or _SCP_LIKE.fullmatch(text)
    if match is None:
        return text
    address = f"https://{match['host'].lower()}/{match['path']}"
    fields = match.groupdict()
    port = int(fields.get("port") or _SSH_PORT)
    if opens(fields["user"] or "git", match["host"].lower(), port):
        return address
    if fields["user"] not in (None, "git"):
        raise InvalidRepositoryURL(
            "That address names a user, which was neither used nor stored: repositories are fetched without one. "
            f"Try {address.removesuffix('.git')}. Where only ssh leads to it, an operator can add a key for that host."
        )
    if port != _SSH_PORT:
        raise InvalidRepositoryURL(
            "That address names a port of ssh, and repositories are fetched over https. "
            f"Try {address.removesuffix('.git')}, with the port of https if it is not 443. Where only ssh leads to it, "
            "an operator can add a key for that host."
        )
    return address
