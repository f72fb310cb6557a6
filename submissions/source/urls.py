"""Turn what a person typed into the canonical address of a repository, or refuse it with a reason."""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from marketplace.skills.publishers import full_address
from submissions.source.errors import InvalidRepositoryURL
from submissions.source.hosts import normalise_host, refuse_private_name

MAX_URL_LENGTH = 1024
MAX_SEGMENTS = 20
# In bytes. File systems allow 255; a fetch also tries the name with `.git`.
MAX_FILE_NAME = 251
_SCP_LIKE = re.compile(r"(?:[^\s/@]+@)?(?P<host>[A-Za-z0-9.-]+\.[A-Za-z]+):(?P<path>[^\s/:][^\s:]*)")
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://?")
_REF = re.compile(r"(?!-)[A-Za-z0-9._/+@#=-]{1,250}")
_VIEWS = ("tree", "blob")
_EXAMPLE = "Use an address such as https://github.com/owner/repository."


@dataclass(frozen=True)
class SourcePolicy:
    """Where repositories may come from, as the operator decided for an environment.

    ``file_roots`` are folders below which file:// is allowed. ``private_hosts`` are host names (or ``host:port``) that
    may resolve to private or loopback addresses. ``rewrites`` are pairs of URL prefixes; the first that matches the
    canonical URL is replaced for the fetch alone (a mirror, or tests), and its target needs no entry in the other two.
    ``ca_file`` is a PEM file for hosts whose certificate is signed by a private authority.
    """

    file_roots: tuple[Path, ...] = ()
    private_hosts: frozenset[str] = frozenset()
    rewrites: tuple[tuple[str, str], ...] = ()
    ca_file: Path | None = None

    def allows_private(self, host: str, port: int | None) -> bool:
        """Tell whether a host may be private; ``port`` None means 443."""
        return host in self.private_hosts or f"{host}:{port or 443}" in self.private_hosts


@dataclass(frozen=True)
class RepositoryURL:
    """A repository in its canonical spelling; two spellings of one repository have equal ``url``.

    ``ref`` and ``path`` come from a pasted page address, such as ``/tree/main/skills/x``. They are empty for a plain
    address and not part of the repository's identity. ``ref`` is the first segment after ``/tree/``, because a branch
    name with a slash cannot be told from a path there.
    """

    url: str
    host: str
    owner: str
    name: str
    ref: str = ""
    path: str = ""


def normalise_repository_url(text: str, policy: SourcePolicy) -> RepositoryURL:
    """Return the repository that ``text`` names: an https or file address, or ``owner/repo`` for GitHub.

    Contacts no host. Raises InvalidRepositoryURL with a sentence for the person who typed the address; the sentence
    never repeats a password.
    """
    text = text.strip()
    if not text:
        raise InvalidRepositoryURL(f"Enter the address of a git repository. {_EXAMPLE}")
    if len(text) > MAX_URL_LENGTH:
        raise InvalidRepositoryURL(f"That address is longer than {MAX_URL_LENGTH} characters. {_EXAMPLE}")
    if any(unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for character in text):
        raise InvalidRepositoryURL("That address contains control or invisible characters. Type it in again.")
    if "::" in re.split(r"[/\[]", text, maxsplit=1)[0]:
        raise InvalidRepositoryURL(f"Git transport helpers (such as ext::) are never run. {_EXAMPLE}")
    if any(character.isspace() for character in text) or "\\" in text:
        raise InvalidRepositoryURL(f"That is not a repository address: it has spaces or backslashes. {_EXAMPLE}")
    text = full_address(text)
    scheme = _scheme_of(text)
    return _local_repository(text, policy) if scheme == "file" else _remote_repository(text, policy)


def _scheme_of(text: str) -> str:
    match = _SCHEME.match(text)
    if match is None:
        scp = _SCP_LIKE.fullmatch(text)
        if scp is not None:
            raise InvalidRepositoryURL(
                "Repositories are fetched over https only, not ssh. "
                f"Try https://{scp['host'].lower()}/{scp['path'].removesuffix('.git')}."
            )
        raise InvalidRepositoryURL(f"That is not a repository address. {_EXAMPLE}")
    scheme = match["scheme"].lower()
    if scheme in {"https", "file"}:
        return scheme
    if scheme == "http":
        raise InvalidRepositoryURL("Repositories are fetched over https only; replace http:// by https://.")
    raise InvalidRepositoryURL(f"Repositories are fetched over https only, not {scheme[:20]}. {_EXAMPLE}")


def _remote_repository(text: str, policy: SourcePolicy) -> RepositoryURL:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise InvalidRepositoryURL(f"That is not a valid address. {_EXAMPLE}") from None
    if parts.password is not None:
        raise InvalidRepositoryURL(
            "That address contains a password or token. It was not stored. Only public repositories are fetched: "
            "take it out, and revoke it if it is real."
        )
    raw_host = parts.netloc.rpartition("@")[2]
    raw_host = re.sub(r":\d*$", "", raw_host)
    host = normalise_host(raw_host)
    if host is None:
        raise InvalidRepositoryURL(f"That address has no valid host name. {_EXAMPLE}")
    if port == 443:
        port = None
    if not policy.allows_private(host, port):
        reason = refuse_private_name(host)
        if reason is not None:
            raise InvalidRepositoryURL(f"Only hosts on the public internet can be fetched: {reason}.")
    if host == "www.github.com":
        host = "github.com"
    segments = _segments(parts.path)
    segments, ref, path = _split_view(host, segments)
    if len(segments) < 2:
        raise InvalidRepositoryURL(f"That address names a host or an owner, but no repository. {_EXAMPLE}")
    segments[-1] = _without_git(segments[-1])
    if host == "github.com":
        if len(segments) > 2:
            owner_and_name = "/".join(segments[:2])
            raise InvalidRepositoryURL(
                f"That is a page of a repository, not the repository. Try https://github.com/{owner_and_name}."
            )
        segments = [segment.lower() for segment in segments]
    authority = f"[{host}]" if ":" in host else host
    if port is not None:
        authority = f"{authority}:{port}"
    quoted = "/".join(quote(segment, safe="~@+=,$!()'*;&:") for segment in segments)
    return RepositoryURL(f"https://{authority}/{quoted}", host, "/".join(segments[:-1]), segments[-1], ref, path)


def _segments(path: str) -> list[str]:
    segments = [unquote(segment, errors="surrogateescape") for segment in path.split("/") if segment]
    if len(segments) > MAX_SEGMENTS:
        raise InvalidRepositoryURL(f"That address has more than {MAX_SEGMENTS} parts. {_EXAMPLE}")
    for segment in segments:
        if segment in {".", ".."} or "/" in segment or "\\" in segment or not segment.isprintable():
            raise InvalidRepositoryURL("That address has a part that is no name (dots, slashes or control characters).")
    return segments


def _split_view(host: str, segments: list[str]) -> tuple[list[str], str, str]:
    """Split the address of a web page (``/tree/main/skills/x``) into repository, ref and path."""
    for place in range(2, len(segments)):
        word = segments[place]
        rest = segments[place + 1 :]
        if word == "src" and host == "bitbucket.org" and rest:
            break
        if word == "src" and len(rest) >= 2 and rest[0] in {"branch", "tag", "commit"}:
            rest = rest[1:]
            break
        if word in _VIEWS and rest:
            break
    else:
        return segments, "", ""
    repository = segments[: place - 1] if segments[place - 1] == "-" else segments[:place]
    ref, inner = rest[0], rest[1:]
    if not _REF.fullmatch(ref) or ".." in ref:
        raise InvalidRepositoryURL("That address names a branch or commit that git would not accept.")
    if inner and inner[-1].lower() == "skill.md":
        inner = inner[:-1]
    return list(repository), ref, "/".join(inner)


def _without_git(segment: str) -> str:
    stripped = segment[:-4] if segment.lower().endswith(".git") else segment
    return stripped or segment


def _local_repository(text: str, policy: SourcePolicy) -> RepositoryURL:
    parts = urlsplit(text)
    if parts.netloc not in {"", "localhost"}:
        raise InvalidRepositoryURL("A file:// address names no host: write file:///folder/repository.")
    raw = unquote(parts.path, errors="surrogateescape")
    if not raw.isprintable():
        raise InvalidRepositoryURL("That address contains characters that no repository folder may have.")
    too_long = any(len(os.fsencode(segment)) > MAX_FILE_NAME for segment in raw.split("/"))
    path = None if too_long else resolve_below(raw, policy.file_roots)
    if path is None:
        raise InvalidRepositoryURL(
            f"Repositories on this machine can be fetched only from folders that the operator allows. {_EXAMPLE}"
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
