"""Identities: the publisher of a repository, and what makes two publications the same skill."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

# Hosts that ignore case in names of owners and repositories; elsewhere, names that differ in case may be two owners.
_CASE_INSENSITIVE_HOSTS: Final = frozenset({"github.com", "gitlab.com", "bitbucket.org", "codeberg.org"})
_LOCAL_HOST: Final = "local"
_ON_GITHUB: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})/[A-Za-z0-9._-]{1,100}")
_HOST_AND_PATH: Final = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::\d+)?/\S+/\S+")


@dataclass(frozen=True, slots=True)
class Publisher:
    """The owner of a repository.

    ``identity`` is ``host/owner`` in lower case. ``handle`` is unique to it and safe in a URL: the owner alone on
    GitHub, whose names have no dot, and ``owner.host`` elsewhere, so that no owner on another host can claim the
    handle of a GitHub owner. ``owner`` and ``repository`` are the two parts of the URL's path, in lower case.
    """

    identity: str
    handle: str
    owner: str
    repository: str


def publisher_of(repo_url: str) -> Publisher:
    """Return the publisher of a repository by its normalised URL."""
    parts = urlsplit(repo_url)
    segments = [unquote(segment, errors="replace").lower() for segment in parts.path.split("/") if segment]
    repository = (segments[-1] if segments else "").removesuffix(".git")
    if parts.scheme == "file":
        host, owners = _LOCAL_HOST, segments[-2:-1] or [_LOCAL_HOST]
    else:
        host, owners = _host(parts.netloc), segments[:-1] or [_host(parts.netloc)]
    owner = "/".join(owners)
    bare = "~".join(re.sub(r"[^a-z0-9._-]+", "-", segment).strip(".-") or "-" for segment in owners)
    handle = bare if host == "github.com" else f"{bare}.{host.replace(':', '-')}"
    return Publisher(f"{host}/{owner}", handle[:200], owner, repository)


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
    if host in _CASE_INSENSITIVE_HOSTS:
        path = path.lower()
    return f"{parts.scheme.lower()}://{'' if host == _LOCAL_HOST else host}{path}"


def skill_identity(repo_url: str, skill_path: str) -> str:
    """Return the identity of a skill: the SHA-256 (hex) over its repository's URL and its folder in it.

    Two publications with the same identity are the same skill, whatever they are called.
    """
    inside = "/".join(segment for segment in skill_path.split("/") if segment not in ("", "."))
    return hashlib.sha256(f"{normalised_repository(repo_url)}\0{inside}".encode(errors="surrogatepass")).hexdigest()


def _host(netloc: str) -> str:
    return netloc.rpartition("@")[2].lower() or _LOCAL_HOST
