"""Identities: the publisher of a repository, and what makes two publications the same skill."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote_to_bytes, urlsplit

# Hosts that ignore case in names of owners and repositories; elsewhere, names that differ in case may be two owners.
CASE_BLIND_HOSTS: Final = frozenset({"github.com", "gitlab.com", "bitbucket.org", "codeberg.org"})
_LOCAL_HOST: Final = "local"
# Of the addresses of skills that accounts upload: nothing is fetched from there.
UPLOADS: Final = "upload://"
# Those that belong to the account itself, and to no publisher that it has claimed.
ACCOUNTS: Final = f"{UPLOADS}account/"
_ACCOUNT_HOST: Final = "account"
# Names that stand for something else than the host that is called so, and the scheme with which they do.
_NO_HOSTS: Final = {_LOCAL_HOST: "file", _ACCOUNT_HOST: "upload"}
_ON_GITHUB: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})/[A-Za-z0-9._-]{1,100}")
_HOST_AND_PATH: Final = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::\d+)?/\S+/\S+")
_DEFAULT_PORTS: Final = {"https": ":443", "http": ":80"}
# Left as they are in an identity; other characters, such as a space, become %20.
_SAFE: Final = "~@+=,$!()'*;&:"
# First segments of a path that name a service of the host and no owner: all owners of the host share them.
_SERVICES: Final = frozenset({"scm", "git"})
_PLAIN_OWNER: Final = re.compile(r"[a-z0-9_-]+")
_PLAIN_HOST: Final = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_LONGEST_HANDLE: Final = 200
_LONGEST_IDENTITY: Final = 300
_HASH_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Publisher:
    """The owner of a repository.

    ``identity`` is ``host/owner``: the host in lower case with a port that is not the default one and without ``www.``,
    the owner in lower case on ``CASE_BLIND_HOSTS``, with special characters quoted as in a URL. A subgroup belongs to
    its group: the owner is the first segment of the path. ``groups`` are the identities from that owner down to the
    innermost subgroup.

    ``handle`` is unique to the identity and safe in a URL: the owner alone on GitHub, whose names have no dot, and
    ``owner.host`` elsewhere, so that no owner on another host can claim the handle of a GitHub owner. One that had to
    be changed to be safe ends with ``~`` and a short hash of the identity; no other handle has a ``~``.

    ``owner`` and ``repository`` are the two parts of the URL's path, in lower case. Of a skill that an account uploads,
    the account is the owner, ``account/{name}``, and has a handle of its own like an owner on another host.
    """

    identity: str
    handle: str
    owner: str
    repository: str
    groups: tuple[str, ...]


def publisher_of(repo_url: str) -> Publisher:
    """Return the publisher of a repository by its normalised URL; raise ``ValueError`` where it is not a URL."""
    parts = urlsplit(repo_url)
    # Undecodable bytes stay apart, because two owners may differ in them alone.
    segments = [unquote_to_bytes(segment).decode(errors="surrogateescape") for segment in parts.path.split("/")]
    segments = [segment for segment in segments if segment]
    repository = (segments[-1] if segments else "").lower().removesuffix(".git")
    if parts.scheme == "file":
        host, owners = _LOCAL_HOST, segments[-2:-1] or [_LOCAL_HOST]
        owners = [owner.lower() for owner in owners]
    else:
        host = _bare_host(parts.scheme, parts.netloc)
        owners = segments[:-1] or [host]
        if host in CASE_BLIND_HOSTS:
            owners = [owner.lower() for owner in owners]
        if host in _NO_HOSTS and parts.scheme != _NO_HOSTS[host]:
            # So that it is not taken for the folders of this machine, or for accounts.
            host = f"{host}:443"
    first = 2 if owners[0] in _SERVICES and len(owners) > 1 else 1
    quoted = [quote(owner.encode(errors="surrogateescape"), safe=_SAFE) for owner in owners]
    groups = tuple(_cut_identity(f"{host}/{'/'.join(quoted[:end])}") for end in range(first, len(quoted) + 1))
    name = _storable("/".join(owners)).lower()
    return Publisher(groups[0], _handle(groups[0]), name, _storable(repository), groups)


def upload_address(account: str, slug: str) -> str:
    """Return the address of a skill that an account uploads, which stands where that of a repository would."""
    return f"{ACCOUNTS}{quote(account, safe='~@+')}/{slug}"


def claimed_address(publisher: str, slug: str) -> str:
    """Return the address of a skill that an account uploads for a publisher, by its identity, which it has claimed."""
    return f"{UPLOADS}{publisher}/{slug}"


def is_uploaded(repo_url: str) -> bool:
    """Return whether an address is that of a skill that an account uploads."""
    return repo_url.startswith(UPLOADS)


def publisher_identity(repo_url: str) -> str:
    """Return the identity of a repository's publisher, or an empty text where ``repo_url`` is not a URL."""
    try:
        return publisher_of(repo_url).identity
    except ValueError:
        return ""


def owned_by(repo_url: str, owners: Iterable[str]) -> bool:
    """Return whether one of ``owners`` (``host/owner`` or ``host/group/subgroup``) owns a repository.

    ``/folder`` names the folder of repositories on this machine, and ``account/name`` an account that uploads. Case
    counts where it does for the host, and a port counts as part of the host. False where ``repo_url`` is not a URL.
    """
    try:
        groups = publisher_of(repo_url).groups
    except ValueError:
        return False
    wanted = {owner_identity(owner) for owner in owners}
    return not wanted.isdisjoint(groups)


def owner_identity(written: str) -> str:
    """Return the identity of an owner or subgroup that an operator wrote as ``host/owner``, as ``groups`` have it."""
    host, _, path = written.strip().rstrip("/").partition("/")
    if host in ("", _LOCAL_HOST):
        return f"{_LOCAL_HOST}/{path.lower()}"
    # `local:443` is the host of that name and not this machine; `account:443` is one as well.
    if host.removesuffix(":443") not in _NO_HOSTS:
        host = _bare_host("https", host)
    path = path.lower() if host in CASE_BLIND_HOSTS else path
    return _cut_identity(f"{host}/{quote(unquote_to_bytes(path), safe=f'{_SAFE}/')}")


def any_case(identity: str) -> str:
    """Return an owner's identity in lower case: a host that nobody knows may ignore case, and no block is evaded so."""
    if identity.endswith("%"):
        return identity.lower()
    text = unquote_to_bytes(identity).decode(errors="surrogateescape").lower()
    return quote(text.encode(errors="surrogateescape"), safe=f"{_SAFE}/")


def _handle(identity: str) -> str:
    host, _, owner = identity.partition("/")
    named = owner if host == "github.com" else f"{owner}.{host}"
    if _PLAIN_OWNER.fullmatch(owner) and _PLAIN_HOST.fullmatch(host) and len(named) <= _LONGEST_HANDLE:
        return named
    safe = re.sub(r"[^a-z0-9._-]+", "-", named.lower()).strip(".-") or "-"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{safe[: _LONGEST_HANDLE - _HASH_DIGITS - 1]}~{digest}"


def _cut_identity(identity: str) -> str:
    if len(identity) <= _LONGEST_IDENTITY:
        return identity
    # No identity that was not cut has a % without two digits after it.
    return f"{identity[:200]}%{hashlib.sha256(identity.encode()).hexdigest()}%"


def _bare_host(scheme: str, netloc: str) -> str:
    return _host(netloc).removesuffix(_DEFAULT_PORTS.get(scheme, ":443")).removesuffix(".").removeprefix("www.")


def _storable(text: str) -> str:
    return text.encode(errors="replace").decode()


def full_address(text: str) -> str:
    """Return the URL that ``owner/repository`` (on GitHub) or ``host/owner/repository`` is short for, or ``text``."""
    if _ON_GITHUB.fullmatch(text):
        return f"https://github.com/{text}"
    return f"https://{text}" if _HOST_AND_PATH.fullmatch(text) else text


def normalised_repository(repo_url: str) -> str:
    """Return the canonical URL of a repository: host in lower case, without user, ``.git`` and trailing slash."""
    parts = urlsplit(repo_url.strip())
    host = _host(parts.netloc)
    path = parts.path.rstrip("/").removesuffix(".git")
    if host in CASE_BLIND_HOSTS:
        path = path.lower()
    return f"{parts.scheme.lower()}://{'' if host == _LOCAL_HOST else host}{path}"


def blocked_spellings(repo_url: str) -> tuple[str, ...]:
    """Return the canonical URLs by which a repository may be blocked: without ``www.`` and ``:443``, and as it is."""
    canonical = normalised_repository(repo_url)
    parts = urlsplit(canonical)
    if parts.scheme == "file":
        return (canonical,)
    bare = normalised_repository(parts._replace(netloc=_bare_host(parts.scheme, parts.netloc)).geturl())
    return tuple(dict.fromkeys((bare, canonical)))


def skill_identity(repo_url: str, skill_path: str) -> str:
    """Return the identity of a skill: the SHA-256 (hex) over its repository's URL and its folder in it.

    Two publications with the same identity are the same skill, whatever they are called.
    """
    inside = "/".join(segment for segment in skill_path.split("/") if segment not in ("", "."))
    return hashlib.sha256(f"{normalised_repository(repo_url)}\0{inside}".encode(errors="surrogatepass")).hexdigest()


def _host(netloc: str) -> str:
    return netloc.rpartition("@")[2].lower() or _LOCAL_HOST
