"""Turn what a person typed into the canonical address of a repository, or refuse it with a reason."""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from marketplace.skills.publishers import CASE_BLIND_HOSTS
from submissions.source.errors import EXAMPLE, NAMES_A_USER, InvalidRepositoryURL
from submissions.source.hosts import normalise_host
from submissions.source.logins import Login, login_for
from submissions.source.places import Place, is_possible_ref
from submissions.source.proxies import Proxy
from submissions.source.spellings import Written, write_out
from submissions.source.ssh import SshKey
from submissions.source.web_pages import split_page
from vskill.hidden_characters import visible
from vskill.proxied_services import is_asked_directly
from vskill.public_hosts import refuse_private_name

MAX_URL_LENGTH = 1024
MAX_SEGMENTS = 20
# In bytes. File systems allow 255; a fetch also tries the name with `.git`.
MAX_FILE_NAME = 251


@dataclass(frozen=True)
class SourcePolicy:
    """Where repositories may come from, as the operator decided for an environment.

    ``file_roots`` are folders below which file:// is allowed. ``private_hosts`` are host names (or ``host:port``) that
    may resolve to private or loopback addresses. ``rewrites`` are pairs of URL prefixes; the first that matches the
    canonical URL is replaced for the fetch alone (a mirror, or tests), and its target needs no entry in the other two.
    ``ca_file`` is a PEM file for hosts whose certificate is signed by a private authority. ``logins`` are for hosts
    that ask for sign-in, and what ``ssh_keys`` open is read over ssh. Where there is a ``proxy``, everything is fetched
    through it, but for the ``unproxied`` host names (or ``host:port``).
    """

    file_roots: tuple[Path, ...] = ()
    private_hosts: frozenset[str] = frozenset()
    rewrites: tuple[tuple[str, str], ...] = ()
    ca_file: Path | None = None
    logins: tuple[Login, ...] = ()
    ssh_keys: tuple[SshKey, ...] = ()
    proxy: Proxy | None = None
    unproxied: frozenset[str] = frozenset()

    def allows_private(self, host: str, port: int | None) -> bool:
        """Tell whether a host may be private; ``port`` None means 443."""
        return host in self.private_hosts or f"{host}:{port or 443}" in self.private_hosts

    def proxy_for(self, host: str, port: int) -> Proxy | None:
        """Return what a host is reached through, ``None`` where it is reached directly."""
        return None if {host, f"{host}:{port}"} & self.unproxied else self.proxy

    def proxy_for_service(self, url: str) -> Proxy | None:
        """Return the same for a service that the operator configured, which is also reached directly if it is local."""
        return None if is_asked_directly(url, self.unproxied) else self.proxy

    def login_for(self, url: str) -> Login | None:
        """Return what ``url`` is read with, or ``None`` where that is nothing; ``url`` is what is contacted."""
        return login_for(self.logins, url)

    def opens_over_ssh(self, user: str, host: str, port: int) -> bool:
        """Tell whether one of our keys is for this ``user`` of the ssh server of a host."""
        return any((one.user, one.place.split("/")[0], one.port) == (user, host, port) for one in self.ssh_keys)


@dataclass(frozen=True)
class RepositoryURL:
    """A repository in its canonical spelling; two spellings of one repository have equal ``url``.

    ``places`` are the refs and folders that the rest of the address may mean, the longest ref first: for
    ``/tree/feature/x`` the branch ``feature/x``, and the folder ``x`` on the branch ``feature``. The first whose ref
    the repository has is meant. They are empty for a plain address, and no part of the repository's identity.
    """

    url: str
    host: str
    owner: str
    name: str
    places: tuple[Place, ...] = ()


def normalise_repository_url(text: str, policy: SourcePolicy) -> RepositoryURL:
    """Return the repository that ``text`` names: an address of https or file, of ssh, or a short one for GitHub.

    Contacts no host. Raises InvalidRepositoryURL with a sentence for the person who typed the address; the sentence
    never repeats a user or password. docs/addresses.md lists what is understood.
    """
    text = text.strip()
    if not text:
        raise InvalidRepositoryURL(f"Enter the address of a git repository. {EXAMPLE}")
    if len(text) > MAX_URL_LENGTH:
        raise InvalidRepositoryURL(f"That address is longer than {MAX_URL_LENGTH} characters. {EXAMPLE}")
    if any(unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for character in text):
        raise InvalidRepositoryURL("That address contains control or invisible characters. Type it in again.")
    if "::" in re.split(r"[/\[]", text, maxsplit=1)[0]:
        raise InvalidRepositoryURL(f"Git transport helpers (such as ext::) are never run. {EXAMPLE}")
    if any(character.isspace() for character in text) or "\\" in text:
        raise InvalidRepositoryURL(f"That is not a repository address: it has spaces or backslashes. {EXAMPLE}")
    plain, _, fragment = text.partition("#")
    written = write_out(plain, policy.opens_over_ssh)
    if written.address.lower().startswith("file:"):
        repository, is_page = _local_repository(written.address, policy), False
    else:
        repository, is_page = _remote_repository(written.address, policy)
    if is_page or not fragment:
        places = repository.places or _places_of(Place("", written.path, written.skill))
    else:
        places = _at_fragment(repository, written, unquote(fragment, errors="surrogateescape"))
    return replace(repository, places=places)


def _places_of(place: Place) -> tuple[Place, ...]:
    return (place,) if place != Place() else ()


def _at_fragment(repository: RepositoryURL, written: Written, fragment: str) -> tuple[Place, ...]:
    """Return the places that ``#BRANCH`` and ``#BRANCH@SKILL`` mean; a tag may have an @ itself."""
    if repository.places:
        shown = visible(fragment, 40)
        raise InvalidRepositoryURL(f"That address names a branch or commit twice. Leave out #{shown}.")
    ref, _, skill = fragment.partition("@")
    places = (Place(fragment, written.path, written.skill), Place(ref, written.path, skill or written.skill))
    possible = tuple(
        replace(one, ref=one.ref.lower()) if one.is_commit else one
        for one in dict.fromkeys(places)
        if is_possible_ref(one.ref) or (not one.ref and skill)
    )
    if not possible:
        raise InvalidRepositoryURL(
            f"What follows # in an address is a branch, tag or commit, as in {repository.url}#main."
        )
    return possible


def _remote_repository(text: str, policy: SourcePolicy) -> tuple[RepositoryURL, bool]:
    """Return the repository, and whether the address is that of a page on which a fragment is only a place."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise InvalidRepositoryURL(f"That is not a valid address. {EXAMPLE}") from None
    if "@" in parts.netloc:
        raise InvalidRepositoryURL(NAMES_A_USER)
    host = normalise_host(re.sub(r":\d*$", "", parts.netloc))
    if host is None:
        raise InvalidRepositoryURL(f"That address has no valid host name. {EXAMPLE}")
    if port == 443:
        port = None
    if not policy.allows_private(host, port):
        reason = refuse_private_name(host)
        if reason is not None:
            raise InvalidRepositoryURL(f"Only hosts on the public internet can be fetched: {reason}.")
    segments = _segments(parts.path)
    if host == "raw.githubusercontent.com" and len(segments) > 3:
        segments.insert(2, "raw")
    if host in ("www.github.com", "raw.githubusercontent.com"):
        host = "github.com"
    authority = f"[{host}]" if ":" in host else host
    if port is not None:
        authority = f"{authority}:{port}"
    query = dict(parse_qsl(parts.query, keep_blank_values=True, errors="replace"))
    segments, places = split_page(f"https://{authority}", host, segments, query)
    if len(segments) < 2:
        raise InvalidRepositoryURL(f"That address names a host or an owner, but no repository. {EXAMPLE}")
    if any("/" in segment for segment in segments):
        raise _no_name()
    segments[-1] = _without_git(segments[-1])
    if host in CASE_BLIND_HOSTS and "@" in "".join(segments):
        address = "/".join(segment.partition("@")[0] for segment in segments)
        raise InvalidRepositoryURL(
            f"No repository has an @ in its name. For a branch, write https://{authority}/{address}#main."
        )
    if host == "github.com":
        segments = [segment.lower() for segment in segments]
    quoted = "/".join(quote(segment, safe="~@+=,$!()'*;&:") for segment in segments)
    is_page = "tab" in query or parts.path.lower().endswith("/skill.md")
    return RepositoryURL(f"https://{authority}/{quoted}", host, "/".join(segments[:-1]), segments[-1], places), is_page


def _segments(path: str) -> list[str]:
    segments = [unquote(segment, errors="surrogateescape") for segment in path.split("/") if segment]
    if len(segments) > MAX_SEGMENTS:
        raise InvalidRepositoryURL(f"That address has more than {MAX_SEGMENTS} parts. {EXAMPLE}")
    for segment in segments:
        # %2F is the slash of a branch such as feature/x, which only the end of a page's address may have.
        for part in segment.split("/"):
            if part in {"", ".", ".."} or "\\" in part or not part.isprintable():
                raise _no_name()
    return segments


def _no_name() -> InvalidRepositoryURL:
    return InvalidRepositoryURL(
        f"That address has a part that is no name (dots, slashes or control characters). {EXAMPLE}"
    )


def _without_git(segment: str) -> str:
    stripped = segment[:-4] if segment.lower().endswith(".git") else segment
    return stripped or segment


def _local_repository(text: str, policy: SourcePolicy) -> RepositoryURL:
    parts = urlsplit(text)
    if parts.netloc not in {"", "localhost"}:
        raise InvalidRepositoryURL("A file:// address names no host: write file:///folder/repository.")
    if parts.query:
        raise InvalidRepositoryURL("A file:// address has no ?: write %3F for one in the name of a folder.")
    raw = unquote(parts.path, errors="surrogateescape")
    if not raw.isprintable():
        raise InvalidRepositoryURL("That address contains characters that no repository folder may have.")
    too_long = any(len(os.fsencode(segment)) > MAX_FILE_NAME for segment in raw.split("/"))
    path = None if too_long else resolve_below(raw, policy.file_roots)
    if path is None:
        raise InvalidRepositoryURL(
            f"Repositories on this machine can be fetched only from folders that the operator allows. {EXAMPLE}"
        )
    name = _without_git(path.name)
    # The canonical address has no `.git`; a fetch tries the folder with and without it.
    canonical = path.with_name(name)
    return RepositoryURL(f"file://{quote(str(canonical))}", "", canonical.parent.name, name)


def resolve_below(raw: str, roots: tuple[Path, ...]) -> Path | None:
    """Return ``raw`` with ``..`` and links resolved if that is strictly below one of ``roots``, else None."""
    try:
        path = Path(raw).resolve()
        if not Path(raw).is_absolute():
            return None
        allowed = any(root.resolve() in path.parents for root in roots)
    except (OSError, RuntimeError, ValueError):
        return None
    return path if allowed else None
