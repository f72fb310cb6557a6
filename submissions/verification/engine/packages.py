"""Read which packages a skill installs and from where: other indexes, repositories, names beside known ones."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path, PurePosixPath
from typing import Final

from submissions.verification.engine.hosts import is_index, is_local, urls_in
from submissions.verification.engine.parts import Part, Sign, sign

_SHORTEST: Final = 6
_MOST: Final = 2000
_FORGES: Final = re.compile(r"(?:^|\.)(?:github\.com|gitlab\.com|bitbucket\.org|codeberg\.org|huggingface\.co)$")
_SETTING: Final = re.compile(
    r"^\s*(?:--(?:extra-)?index-url|--find-links|-i|-f|index-url|extra-index-url|find-links"
    r"|(?:@[\w-]+:)?registry|index|url"
    r"|npmRegistryServer)\s*[=: ]\s*['\"]?(https?://[^\s'\"]+)",
    re.IGNORECASE,
)
_FETCHED: Final = re.compile(r"(?:git\+)?(?:https?|ssh|git)://[^\s'\"#@]+")
_GEMS: Final = re.compile(r"^\s*source\s*\(?\s*['\"](https?://[^'\"]+)")
_REQUIREMENT: Final = re.compile(r"^\s*([A-Za-z][\w.-]{1,80})\s*(?:\[[^\]]*\])?\s*(?:[=<>!~;]|$)")
_SETTINGS: Final = frozenset(
    {".npmrc", "pip.conf", "pip.ini", ".yarnrc", ".yarnrc.yml", "bunfig.toml", ".pypirc", "uv.toml"}
)
_SECTIONS: Final = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "overrides")
_INSTALL: Final = re.compile(
    r"^(?:sudo\s+)?(?:python3?\s+-m\s+)?(pip3?|uv(?:\s+pip)?|pipx|poetry|npm|pnpm|yarn|bun)\s+(?:install|add"
    r"|i)\s+(.{2,600})$"
)


@cache
def _popular() -> dict[str, frozenset[str]]:
    table = tomllib.loads(Path(__file__).with_name("packages.toml").read_text(encoding="utf-8"))
    return {name: frozenset(table[name].split()) for name in ("python", "javascript")}


def is_package_file(file: str) -> bool:
    """Return whether a file that is no manifest of its own kind lists packages, or sets where they come from."""
    name = PurePosixPath(file).name.lower()
    return name in {*_SETTINGS, "gemfile"} or (
        name.startswith(("requirements", "constraints")) and name.endswith((".txt", ".in"))
    )


def package_signs(part: Part) -> Iterator[Sign]:
    """Yield what a file of dependencies, or of settings of a package manager, is a sign of."""
    name = PurePosixPath(part.file).name.lower()
    lines = part.text[:200_000].split("\n")[:_MOST]
    if name == "gemfile":
        for offset, line in enumerate(lines):
            if (match := _GEMS.match(line)) is not None:
                yield from _of_index(part, match[1], offset)
    elif is_package_file(part.file):
        for offset, line in enumerate(lines):
            yield from _of_line(part, line, offset, name.startswith(("requirements", "constraints")))
    elif name == "package.json":
        yield from _of_manifest(part)
    elif name == "pyproject.toml":
        for offset, line in enumerate(lines):
            if re.search(r"(?:index|source|find-links)", part.text) and (match := _SETTING.match(line)) is not None:
                yield from _of_index(part, match[1], offset)


def _of_line(part: Part, line: str, offset: int, requirements: bool) -> Iterator[Sign]:
    if line.lstrip().startswith(("#", ";", "//")):
        return
    if (match := _SETTING.match(line)) is not None:
        yield from _of_index(part, match[1], offset)
    elif requirements and (match := _FETCHED.search(line)) is not None:
        yield from _of_repository(part, match[0], offset)
    elif requirements and (match := _REQUIREMENT.match(line)) is not None and (beside := neighbour(match[1], "python")):
        yield sign("package-lookalike", part, offset, beside)


def _of_index(part: Part, address: str, offset: int) -> Iterator[Sign]:
    hosts = urls_in(address)
    if hosts and not is_index(hosts[0][0]):
        yield sign("package-index", part, offset, hosts[0][0])


def _of_repository(part: Part, address: str, offset: int) -> Iterator[Sign]:
    hosts = urls_in(address.removeprefix("git+").replace("ssh://", "https://").replace("git://", "https://"))
    if hosts and not _FORGES.search(hosts[0][0]) and not is_local(hosts[0][0]) and not is_index(hosts[0][0]):
        yield sign("package-repository", part, offset, hosts[0][0])


def _of_manifest(part: Part) -> Iterator[Sign]:
    try:
        value = json.loads(part.text)
    except (ValueError, RecursionError):
        return
    if not isinstance(value, dict):
        return
    for section in _SECTIONS:
        held = value.get(section)
        for name, version in list(held.items())[:_MOST] if isinstance(held, dict) else ():
            at = part.text.find(f'"{name}"', max(0, part.text.find(f'"{section}"')))
            offset = part.text.count("\n", 0, max(0, at))
            if isinstance(version, str) and (match := _FETCHED.search(version)) is not None:
                yield from _of_repository(part, match[0], offset)
            elif beside := neighbour(name, "javascript"):
                yield sign("package-lookalike", part, offset, beside)


def installed_signs(text: str) -> Iterator[tuple[str, str]]:
    """Yield what an install command is a sign of, with a detail."""
    if (match := _INSTALL.match(text.strip())) is None:
        return
    language = "javascript" if match[1] in {"npm", "pnpm", "yarn", "bun"} else "python"
    for word in match[2].split()[:60]:
        if (found := _FETCHED.match(word)) is not None:
            hosts = urls_in(found[0].removeprefix("git+").replace("ssh://", "https://").replace("git://", "https://"))
            if hosts and not _FORGES.search(hosts[0][0]) and not is_local(hosts[0][0]) and not is_index(hosts[0][0]):
                yield "package-repository", hosts[0][0]
        elif not word.startswith("-") and (beside := neighbour(re.split(r"[=<>~!\[@]", word)[0], language)):
            yield "package-lookalike", beside


@lru_cache(maxsize=4096)
def neighbour(name: str, language: str) -> str:
    """Return the well-known package that ``name`` is one slip away from, or '' where it is known itself or beside none.

    A slip is two letters swapped, one doubled, left out, or taken for one that looks like it.
    """
    name = name.lower().replace("_", "-")
    popular = _popular()[language]
    if len(name) < _SHORTEST or name in popular or name in _popular()["python"] | _popular()["javascript"]:
        return ""
    for one in _slips(name):
        if one in popular and len(one) >= _SHORTEST:
            return one
    return ""


def _slips(name: str) -> Iterator[str]:
    for at in range(len(name) - 1):
        if name[at] != name[at + 1]:
            yield name[:at] + name[at + 1] + name[at] + name[at + 2 :]
        else:
            yield name[:at] + name[at + 1 :]
    for at in range(1, len(name)):
        for letter in "abcdefghijklmnopqrstuvwxyz":
            yield name[:at] + letter + name[at:]
    for looks, like in (
        ("0", "o"),
        ("1", "l"),
        ("rn", "m"),
        ("vv", "w"),
        ("5", "s"),
        ("3", "e"),
        ("i", "l"),
        ("u", "o"),
        ("ph", "f"),
    ):
        if looks in name:
            yield name.replace(looks, like, 1)
