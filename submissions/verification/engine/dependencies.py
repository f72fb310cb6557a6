"""List the packages that a skill asks for: in commands, in manifests and in the settings of tool servers."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from submissions.verification.engine.parts import Kind, Part

HASH: Final = "hash"
VERSION: Final = "version"
Found = tuple[str, str, int, str]
"""The kind of a reference, its name, the line in its part (from 0), and what pins it: ``HASH``, ``VERSION`` or ''."""

DEPENDENCY: Final = "dependency"
TOOL_SERVER: Final = "tool_server"
_COMMAND: Final = re.compile(
    r"(?<![\w./-])(?:(?P<python>pip3?|uv pip|uv tool|uv|pipx|poetry|conda)[ \t]+(?:install|add)"
    r"|(?P<runs_python>uvx)"
    r"|(?P<node>npm|pnpm|yarn|bun)[ \t]+(?:install|i|add|global[ \t]+add)"
    r"|(?P<runs_node>npx|bunx|pnpm[ \t]+dlx|yarn[ \t]+dlx)"
    r"|(?P<go>go)[ \t]+(?:install|get|run)"
    r"|(?P<other>cargo|gem|brew|apt-get|apt|apk|dnf|yum)[ \t]+(?:install|add)"
    r"|(?P<image>docker|podman)[ \t]+(?:run|pull))[ \t]+"
    r"(?P<words>(?:'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|[^\n;|&><`)'\"])"
    r"{1,400})"
)
# Nothing of the above is tried where none of these occurs.
_TELLING: Final = ("pip", "uv", "npm", "npx", "yarn", "bun", "go ", "cargo", "gem", "brew", "apt", "conda", "poetry",
                   "docker", "podman", "apk", "dnf", "yum")  # fmt: skip
_WITH_VALUE: Final = frozenset(
    {"-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "--registry", "-t",
     "--target", "-p", "--python", "-e", "--env", "-v", "--volume", "--name", "-w", "--workdir", "--network",
     "-f", "--find-links", "--prefix", "-n", "--user", "-u", "--entrypoint"}
)  # fmt: skip
_NAME: Final = re.compile(r"@?[A-Za-z0-9][\w.@/+:~^=<>!,\[\]#*-]{0,200}")
_COMMIT: Final = re.compile(r"@[0-9a-f]{40}\b|#[0-9a-f]{40}\b|@sha256:[0-9a-f]{64}\b")
_EXACT: Final = re.compile(r"v?\d+(?:\.\d+){1,3}(?:[-+.]?[\w.+-]{1,40})?")
_PYTHON_EXACT: Final = re.compile(r"={2,3}\s*\d[\w.+!-]*\s*(?:;|$)")
_REQUIREMENT: Final = re.compile(
    r"^[ \t]*([A-Za-z0-9][\w.-]{0,100}(?:\[[\w, -]{0,100}\])?\s*(?:[=<>!~@;][^#\n]{0,300})?)"
)
_INLINE_SCRIPT: Final = re.compile(r"^# /// script\s*$\n((?:^#(?:| .*)$\n?){1,100})", re.MULTILINE)
_USES: Final = re.compile(r"^[ \t]*(?:-\s+)?uses:\s*['\"]?([\w.-]+/[\w./-]+@[\w./-]+)", re.MULTILINE)
_FROM: Final = re.compile(r"^[ \t]*FROM\s+(?:--\S+\s+)?([\w./:@-]{2,200})", re.MULTILINE | re.IGNORECASE)
_GO_MODULE: Final = re.compile(r"^[ \t]*(?:require\s+)?([\w.-]+\.[a-z]{2,10}/[\w./-]+)\s+(v\d[\w.+-]*)", re.MULTILINE)
_SECTIONS: Final = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_LONGEST: Final = 200_000


def dependencies_in(part: Part) -> Iterator[Found]:
    """Yield what a part of a skill asks for."""
    text = part.text[:_LONGEST]
    if part.kind is Kind.CODE and any(word in text for word in _TELLING):
        yield from _commands(text)
    # Only the whole of a file is a manifest, which no document is.
    if part.origin == "" and part.line == 1 and not part.inline and not part.file.endswith(".md"):
        yield from _of_manifest(part.file.rpartition("/")[2].lower(), text)
    if part.language == "python" and "# /// script" in text and (script := _INLINE_SCRIPT.search(text)) is not None:
        lines = "\n".join(line.removeprefix("#").removeprefix(" ") for line in script[1].split("\n"))
        lines = lines.partition("\n///")[0]
        yield from _toml(lines, text.count("\n", 0, script.start(1)))
    if part.kind is not Kind.PROSE and '"mcpServers"' in text:
        yield from _tool_servers(text)


def python_pin(requirement: str, after: str = "") -> str:
    """Return what pins a requirement of Python: a hash in it or right ``after`` it, an exact version, or ''."""
    if "--hash=sha" in after[:200] or _COMMIT.search(requirement) is not None:
        return HASH
    return VERSION if _PYTHON_EXACT.search(requirement) is not None and "*" not in requirement else ""


def node_pin(wanted: str) -> str:
    """Return what pins the version that a manifest of Node asks for."""
    if _COMMIT.search(wanted) is not None:
        return HASH
    return VERSION if _EXACT.fullmatch(wanted.removeprefix("=").strip()) is not None else ""


def _commands(text: str) -> Iterator[Found]:
    line, counted = 0, 0
    for match in _COMMAND.finditer(text):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        group = next(name for name in match.groupdict() if name != "words" and match[name])
        runs = group in {"runs_python", "runs_node", "image", "go"}
        for word in _packages(match["words"].split(), only_first=runs):
            yield DEPENDENCY, word, line, _pin_of(group, word, match["words"])


def _packages(words: list[str], *, only_first: bool) -> Iterator[str]:
    skipped = False
    for word in words:
        if word.startswith("#"):
            return
        if skipped:
            skipped = False
        elif word in {"--from", "--package", "-p"}:
            continue
        elif word.startswith("-"):
            skipped = word in _WITH_VALUE
        else:
            bare = word.strip("'\"")
            if "://" in bare or bare.startswith((".", "/", "~", "$")) or _NAME.fullmatch(bare) is None:
                if only_first:
                    return
                continue
            yield bare
            if only_first:
                return


def _pin_of(group: str, word: str, words: str) -> str:
    if _COMMIT.search(word) is not None or "--require-hashes" in words:
        return HASH
    if group in {"python", "runs_python"} and "==" in word:
        return python_pin(word)
    if group == "image":
        _name, colon, tag = word.rpartition(":")
        return VERSION if colon and _EXACT.fullmatch(tag) is not None else ""
    _name, at, version = word.lstrip("@").rpartition("@")
    return VERSION if at and _EXACT.fullmatch(version) is not None else ""


def _of_manifest(name: str, text: str) -> Iterator[Found]:
    if name == "package.json":
        yield from _package_json(text)
    elif name.startswith("requirements") and name.endswith((".txt", ".in")):
        yield from _requirements(text)
    elif name == "pyproject.toml":
        yield from _toml(text, 0)
    elif name == "go.mod":
        for match in _GO_MODULE.finditer(text):
            yield DEPENDENCY, f"{match[1]}@{match[2]}", text.count("\n", 0, match.start(1)), VERSION
    elif name.startswith(("dockerfile", "containerfile")):
        for match in _FROM.finditer(text):
            if match[1].lower() != "scratch":
                yield DEPENDENCY, match[1], text.count("\n", 0, match.start(1)), _pin_of("image", match[1], "")
    elif name.endswith((".yml", ".yaml")):
        for match in _USES.finditer(text):
            yield DEPENDENCY, match[1], text.count("\n", 0, match.start(1)), _pin_of("action", match[1], "")


def _requirements(text: str) -> Iterator[Found]:
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line.lstrip().startswith(("#", "-")) or (match := _REQUIREMENT.match(line)) is None:
            continue
        # A hash may stand on lines that a backslash joins to it.
        yield (
            DEPENDENCY,
            match[1].strip(" \\"),
            number,
            python_pin(match[1].strip(" \\"), " ".join(lines[number : number + 2])),
        )


def _package_json(text: str) -> Iterator[Found]:
    value = _json(text)
    for section in _SECTIONS:
        wanted = value.get(section)
        for name, version in wanted.items() if isinstance(wanted, Mapping) else ():
            if isinstance(version, str):
                yield DEPENDENCY, f"{name}@{version}", _line_of(text, json.dumps(name)), node_pin(version)


def _toml(text: str, first: int) -> Iterator[Found]:
    try:
        value = tomllib.loads(text)
    except (ValueError, RecursionError):
        return
    project = value.get("project", value)
    groups = [project.get("dependencies")] if isinstance(project, Mapping) else []
    optional = project.get("optional-dependencies") if isinstance(project, Mapping) else None
    groups += list(optional.values()) if isinstance(optional, Mapping) else []
    for group in groups:
        for one in group if isinstance(group, list) else ():
            if isinstance(one, str):
                yield DEPENDENCY, one, first + _line_of(text, one), python_pin(one)
    poetry = value.get("tool", {}) if isinstance(value.get("tool"), Mapping) else {}
    poetry = poetry.get("poetry", {}) if isinstance(poetry.get("poetry"), Mapping) else {}
    wanted = poetry.get("dependencies")
    for name, version in wanted.items() if isinstance(wanted, Mapping) else ():
        if isinstance(version, str) and name != "python":
            yield DEPENDENCY, f"{name} {version}", first + _line_of(text, name), node_pin(version.removeprefix("=="))


def _tool_servers(text: str) -> Iterator[Found]:
    servers = _json(text).get("mcpServers")
    for name, server in servers.items() if isinstance(servers, Mapping) else ():
        if not isinstance(server, Mapping):
            continue
        arguments = server.get("args")
        words = [str(one) for one in arguments] if isinstance(arguments, list) else []
        if isinstance(address := server.get("url"), str):
            yield TOOL_SERVER, f"{name}: {address}", _line_of(text, json.dumps(name)), ""
        elif isinstance(command := server.get("command"), str):
            whole = " ".join([command, *words])
            yield TOOL_SERVER, f"{name}: {whole}", _line_of(text, json.dumps(name)), _weakest(_commands(whole))


def _weakest(found: Iterable[Found]) -> str:
    """Return what pins all packages of a command; '' where one is not pinned, or where none was recognised."""
    pins = {pin for _kind, _name, _line, pin in found}
    return "" if not pins or "" in pins else VERSION if VERSION in pins else HASH


def _json(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, Mapping) else {}


def _line_of(text: str, word: str) -> int:
    return text.count("\n", 0, max(text.find(word), 0))
