"""List what a skill refers to and what can change after its check: addresses, packages, tool servers, other files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from submissions.verification.engine.dependencies import HASH, TOOL_SERVER, VERSION, dependencies_in
from submissions.verification.engine.files import SkillParts
from submissions.verification.engine.hosts import brand, find_urls, is_known_installer, is_local
from submissions.verification.engine.parts import Kind, Part, Sign

MOST_REFERENCES: Final = 200
# Of a part, and about as many in all: nobody reads more, and counting them must not take long.
_MOST_NAMES: Final = 2000
_LONGEST_NAME: Final = 500
_LONGEST_PART: Final = 400_000
ADDRESS: Final = "address"
INSTALLER: Final = "installer"
FILE: Final = "file"
# What is done with a reference, the gravest last.
LINKED: Final = "linked"
USED: Final = "used"
READ: Final = "read"
RUN: Final = "run"
_ORDER: Final = {LINKED: 0, USED: 1, READ: 2, RUN: 3}
_RUN_SIGNS: Final = frozenset({"downloaded-code-run", "download-asked"})
_READ_SIGNS: Final = frozenset({"instructions-fetched", "strangers-obeyed"})
_END: Final = re.compile(r"[.,:;!?*_\\'\"]+$")
_PLACEHOLDER: Final = re.compile(r"[<>{}$%*\[\]…]|\.\.\.")
_EXAMPLES: Final = frozenset({"example", "yourdomain", "your-domain", "domain", "host", "server"})
# Names of vocabularies, which are written as addresses and fetched by nobody.
_VOCABULARIES: Final = frozenset(
    {"www.w3.org", "schemas.openxmlformats.org", "schemas.microsoft.com", "json-schema.org", "purl.org", "xmlns.com",
     "ns.adobe.com", "schemas.android.com", "www.sitemaps.org"}
)  # fmt: skip
_COMMIT: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])|#sha(?:256|384|512)[=-]")
_NUMBER: Final = re.compile(
    r"(?:/|@|-)v?\d+\.\d+(?:\.\d+)?(?:[-+.][\w.]{1,20})?(?=/|$|@|\.(?:tar|zip|tgz|sh|js|css|whl))"
)
_CHECKED: Final = re.compile(
    r"sha(?:256|384|512)sum\s+(?:-c|--check)|shasum\b[^\n]{0,40}-c\b|\bintegrity\s*=|Get-FileHash"
)
_OUTSIDE: Final = re.compile(
    r"(?<![\w/.:~$}-])((?:~|\$HOME|\$\{HOME\}|%USERPROFILE%|/(?:etc|opt|var|home|root|Users|mnt|srv|Library)"
    r"|(?:\.\./){1,8}[\w.@+-]{1,80})(?:/[\w.@+-]{1,80}){0,12})"
)
# Of these one occurs in whatever the above matches and is outside.
_OUTSIDE_NEEDS: Final = (
    "~/",
    "HOME",
    "%/",
    "/etc",
    "/opt",
    "/var",
    "/home",
    "/root",
    "/Users",
    "/mnt",
    "/srv",
    "/Library",
    "../",
)
_FETCHED_FIRST: Final = re.compile(
    r"\b(?:fetch|read|load|follow|open|visit|download|consult|retrieve)\w{0,3}\b[^\n]{0,60}$", re.IGNORECASE
)
_TABLES: Final = (".csv", ".tsv", ".jsonl", ".ndjson", ".geojson", ".fasta", ".vcf", ".po", ".srt", ".map", ".lock")
_LOCKS: Final = frozenset({"package-lock.json", "pnpm-lock.yaml", "npm-shrinkwrap.json", "go.sum", "bun.lockb"})
_TOOLS: Final = re.compile(r"\bmcp__([A-Za-z0-9_-]{1,60}?)__")


@dataclass(frozen=True, slots=True)
class Reference:
    """One thing outside a skill that it names, at its first place.

    ``pinned`` is ``hash``, ``version`` or ''. ``role`` says what is done with an address: ``linked`` for a person to
    read, ``used`` by code, ``read`` by the agent, or ``run``.
    """

    kind: str
    name: str
    file: str
    line: int
    role: str = USED
    pinned: str = ""


def references_of(skill: SkillParts, signs: Iterable[Sign]) -> tuple[list[Reference], int]:
    """Return what a skill refers to, gravest first, at most ``MOST_REFERENCES``, and how many more there are."""
    found: dict[tuple[str, str], Reference] = {}
    for part in skill.parts:
        if len(found) >= _MOST_NAMES:
            break
        for one in islice(_of_part(part, skill), _MOST_NAMES):
            key = (one.kind, one.name)
            known = found.get(key)
            if known is None:
                found[key] = one
            elif _ORDER[one.role] > _ORDER[known.role]:
                # A reference that is pinned in one place and not in the other is not pinned.
                found[key] = replace(one, pinned=one.pinned if known.pinned else "")
            elif not one.pinned:
                found[key] = replace(known, pinned="")
    roles = _roles(signs)
    graver = [_graver(one, roles) for one in found.values()]
    ordered = sorted(graver, key=lambda one: -_ORDER[one.role])
    return ordered[:MOST_REFERENCES], max(0, len(ordered) - MOST_REFERENCES)


def _of_part(part: Part, skill: SkillParts) -> Iterator[Reference]:
    text = part.text[:_LONGEST_PART]

    def place(offset: int) -> int:
        return part.line + (0 if part.origin else offset)

    if "://" in text and not _is_table(part.file):
        line, counted = 0, 0
        for url, start, end in _addresses(text):
            line += text.count("\n", counted, start)
            counted = start
            role = USED if part.kind is not Kind.PROSE else LINKED
            before = text[max(0, start - 80) : start].rpartition("\n")[2]
            if part.kind is Kind.PROSE and _FETCHED_FIRST.search(before) is not None:
                role = READ
            after = text[end : end + 300] if part.kind is Kind.CODE else ""
            yield Reference(ADDRESS, url, part.file, place(line), role, _pin_of(url, after))
    for kind, name, offset, pinned in dependencies_in(part):
        yield Reference(kind, name[:_LONGEST_NAME], part.file, place(offset), USED, pinned)
    if part.origin == "frontmatter":
        for match in _TOOLS.finditer(text):
            yield Reference(TOOL_SERVER, match[1], part.file, place(text.count("\n", 0, match.start())), USED)
    if part.kind in {Kind.PROSE, Kind.CODE} and any(one in text for one in _OUTSIDE_NEEDS):
        for match in _OUTSIDE.finditer(text):
            name = _END.sub("", match[1])
            if _is_outside(name, part.file, skill):
                yield Reference(FILE, name, part.file, place(text.count("\n", 0, match.start(1))), USED)


def _is_table(file: str) -> bool:
    """Return whether a file is data, or a lock file, whose addresses have their hashes beside them."""
    name = posixpath.basename(file).lower()
    return name.endswith(_TABLES) or name in _LOCKS


def _addresses(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each address that leads outside, without a login in it, and where it begins and ends."""
    for match in find_urls(text):
        whole = match[0]
        for opening, closing in ("()", "[]", "{}"):
            while whole.endswith(closing) and whole.count(closing) > whole.count(opening):
                whole = whole[:-1]
        whole = _END.sub("", whole)
        scheme, _, rest = whole.partition("://")
        authority, slash, path = rest.partition("/")
        host = authority.rpartition("@")[2].lower()
        bare = host.partition(":")[0]
        if not bare or "." not in bare or is_local(bare) or bare in _VOCABULARIES or brand(bare) in _EXAMPLES:
            continue
        if _PLACEHOLDER.search(host) is not None or len(whole) > _LONGEST_NAME:
            continue
        yield f"{scheme.lower()}://{host}{slash}{path}", match.start(), match.start() + len(whole)


def _pin_of(url: str, after: str) -> str:
    """Return what pins what lies at ``url``: a commit or hash in it, a check of one right ``after`` it, a version."""
    if _COMMIT.search(url) is not None or _CHECKED.search(after) is not None:
        return HASH
    return VERSION if _NUMBER.search("/" + url.partition("://")[2].partition("/")[2]) is not None else ""


def _is_outside(name: str, file: str, skill: SkillParts) -> bool:
    if not name.startswith(".."):
        return name.count("/") > 0 and len(name) < _LONGEST_NAME
    reached = posixpath.normpath(posixpath.join(posixpath.dirname(file), name))
    return reached.startswith("..") and reached.removeprefix("../") not in skill.names


def _roles(signs: Iterable[Sign]) -> dict[str, str]:
    """Return what is done with the addresses that signs are about."""
    roles: dict[str, str] = {}
    for sign in signs:
        role = RUN if sign.name in _RUN_SIGNS else READ if sign.name in _READ_SIGNS else ""
        if role:
            for url, _start, _end in _addresses(f"{sign.detail} {sign.excerpt}"):
                roles[url] = max(role, roles.get(url, LINKED), key=lambda one: _ORDER[one])
    return roles


def _graver(one: Reference, roles: dict[str, str]) -> Reference:
    if one.kind != ADDRESS:
        return one
    authority, slash, path = one.name.partition("://")[2].partition("/")
    role = max(one.role, roles.get(one.name, one.role), key=lambda name: _ORDER[name])
    installs = role == RUN or is_known_installer(authority, slash + path)
    return replace(one, role=RUN if installs else role, kind=INSTALLER if installs else ADDRESS)
