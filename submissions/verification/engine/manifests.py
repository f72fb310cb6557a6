"""Find what a manifest, a hook, a build file, a notebook or a picture would run, and read it as code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, Final

from submissions.verification.engine.guessing import guess_language
from submissions.verification.engine.parts import Kind, Part

_LIFECYCLE: Final = frozenset(
    {"preinstall", "install", "postinstall", "prepare", "preprepare", "postprepare", "prepublish", "prepack"}
)
_MAX_DEPTH: Final = 40
# Of an object of settings: what is looked at, and what of it is yielded, which is more than is read in one skill.
_MAX_VALUES: Final = 300_000
_MAX_STRINGS: Final = 8000
_SCRIPT_TAG: Final = re.compile(r"<script\b[^<>]{0,500}>", re.IGNORECASE)
_SCRIPT_END: Final = re.compile(r"</script", re.IGNORECASE)
_HANDLER: Final = re.compile(r"\son\w{3,20}\s*=\s*(\"[^\"]{1,4000}\"|'[^']{1,4000}')", re.IGNORECASE)
_COMMENT: Final = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
_MARKUP: Final = re.compile(r"\s{0,20}<(?:\?xml\s|[\w:-]{1,40}\s[^<>]{0,2000}\bxmlns[=:])")
# A remark is no tag, and is kept.
_GONE: Final = "\x01"
_TAG: Final = re.compile(rf"<[/?\w][^<>{_GONE}]{{0,2000}}>")
# On one line, and without a value of several words.
_PLAIN_TAG: Final = re.compile(r"<[/?\w][^<>\"'=\n]{0,60}(?:=\"[^\"'<>=\s]{0,100}\"[^<>\"'=\n]{0,60}){0,10}>")
_ATTRIBUTE: Final = re.compile(r"=\s{0,3}[\"']([^\"'<>\n]{1,400}\s[^\"'<>\n]{1,400})[\"']")
_RUN: Final = re.compile(r"^(\s*)(?:-\s+)?(run|script|command|cmd|entrypoint|before_script|args)\s*:\s*(.*)$")
_DOCKER_RUN: Final = re.compile(r"^\s*(?:RUN|CMD|ENTRYPOINT)\s+(.*)$", re.IGNORECASE)
_DENIED: Final = re.compile(r"den(?:y|ied)|block|forbid|reject|disallow|banned|dangerous", re.IGNORECASE)
# It takes every string, ended or not, so that no letter is looked at twice.
_STRING: Final = re.compile(r'"((?:[^"\\\n]|\\.)*+)"?')
_LONGEST_STRING: Final = 4000


def read_manifest(text: str, file: str) -> Iterator[Part]:
    """Yield the code that a file of settings holds; what is not understood is read as plain text by the caller."""
    path = PurePosixPath(file)
    name, suffix = path.name.lower(), path.suffix.lower()
    if suffix in {".json", ".jsonc", ".ipynb"}:
        yield from _read_json(text, file, name)
    elif suffix in {".yml", ".yaml"}:
        yield from _read_yaml(text, file)
    elif name.startswith(("dockerfile", "containerfile")) or suffix == ".dockerfile":
        yield from _read_docker(text, file)
    elif name in {"makefile", "gnumakefile", "justfile"} or suffix == ".mk":
        yield from _read_recipes(text, file)
    elif suffix in {".html", ".htm", ".svg", ".xml", ".xhtml"}:
        yield from read_markup(text, file)


def read_object(text: str, file: str, line: int) -> Iterator[Part]:
    """Yield the code in a JSON object that a document shows; ``line`` is where it begins in ``file``."""
    name = "package.json" if '"scripts"' in text else ".mcp.json" if '"mcpServers"' in text else "settings.json"
    for part in _read_json(text, file, name):
        yield Part(
            part.kind, part.text, file, line + part.line - 1, part.language, origin=part.origin, starts_itself=True
        )


def _read_json(text: str, file: str, name: str) -> Iterator[Part]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        # Comments and trailing commas are allowed where agents read settings: every string is looked at.
        line, counted = 1, 0
        for match in _STRING.finditer(text, 0, 200_000):
            line += text.count("\n", counted, match.start())
            counted = match.start()
            if 2 <= len(match[1]) <= _LONGEST_STRING:
                yield Part(Kind.CODE, _unescaped(match[1]), file, line, "shell", origin=name)
        return
    if not isinstance(value, Mapping):
        return
    if name.endswith(".ipynb"):
        yield from _cells(value, file)
    elif name == "package.json":
        scripts = value.get("scripts")
        for key, command in scripts.items() if isinstance(scripts, Mapping) else ():
            if isinstance(command, str):
                yield _command(command, text, file, f"script {key}", key in _LIFECYCLE)
    else:
        for trail, command in islice(_commands(value), _MAX_STRINGS):
            starts = "hooks" in trail or "mcpServers" in trail or "folderOpen" in text
            yield _command(command, text, file, ".".join(trail[-4:]), starts)


def _command(command: str, text: str, file: str, origin: str, starts: bool) -> Part:
    at = text.find(json.dumps(command)[1:41])
    line = text.count("\n", 0, max(at, 0)) + 1
    language = (guess_language(command) if "\n" in command else "") or "shell"
    return Part(Kind.CODE, command, file, line, language, origin=origin, starts_itself=starts)


def _unescaped(text: str) -> str:
    return text.replace("\\n", "\n").replace('\\"', '"').replace("\\/", "/").replace("\\\\", "\\")


def _cells(notebook: Mapping[str, Any], file: str) -> Iterator[Part]:
    cells = notebook.get("cells")
    for number, cell in enumerate(cells if isinstance(cells, list) else ()):
        if not isinstance(cell, Mapping):
            continue
        source = cell.get("source", "")
        source = "".join(map(str, source)) if isinstance(source, list) else str(source)
        magic = source.lstrip().startswith(("%%bash", "%%sh"))
        kind = Kind.CODE if cell.get("cell_type") == "code" else Kind.PROSE
        shell = "\n".join(one.lstrip()[1:] for one in source.split("\n") if one.lstrip().startswith("!"))
        if shell:
            yield Part(Kind.CODE, shell, file, 1, "shell", origin=f"cell {number + 1}")
        yield Part(kind, source, file, 1, "shell" if magic else "python", origin=f"cell {number + 1}")


def _commands(value: object) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what runs in an object of settings: a command with its arguments, and the trail of keys to it."""
    waiting: list[tuple[tuple[str, ...], object]] = [((), value)]
    seen = 0
    while waiting and seen < _MAX_VALUES:
        trail, one = waiting.pop()
        seen += 1
        if len(trail) > _MAX_DEPTH or (trail and _DENIED.search(trail[-1])):
            continue
        if isinstance(one, Mapping):
            command = one.get("command")
            if isinstance(command, str):
                arguments = one.get("args", [])
                words = [str(word) for word in arguments] if isinstance(arguments, list) else []
                yield (*trail, "command"), " ".join([command, *words])
            waiting += [((*trail, str(key)), item) for key, item in one.items()]
        elif isinstance(one, list):
            waiting += [(trail, item) for item in one]
        elif (
            isinstance(one, str)
            and trail
            and (" " in one or "|" in one)
            and trail[-1] not in {"command", "description"}
        ):
            yield trail, one


def _read_yaml(text: str, file: str) -> Iterator[Part]:
    """Yield the commands of a workflow, line by line: a parser would follow aliases, and this has none to follow."""
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        match = _RUN.match(lines[index]) if len(lines[index]) < 4000 else None
        index += 1
        if match is None:
            continue
        first, body = index, [match[3].strip("'\"")]
        if match[3].strip() in {"|", ">", "|-", ">-", "|+", ""}:
            body = []
            while index < len(lines) and (not lines[index].strip() or lines[index].startswith(match[1] + " ")):
                body.append(lines[index].strip())
                index += 1
            first += 1
        if any(body):
            yield Part(Kind.CODE, "\n".join(body), file, first, "shell")


def _read_docker(text: str, file: str) -> Iterator[Part]:
    for offset, line in _joined_lines(text):
        if (match := _DOCKER_RUN.match(line)) is not None:
            command = match[1]
            if command.startswith("["):
                command = command.strip("[] ").replace('",', "").replace('"', "")
            yield Part(Kind.CODE, command, file, offset + 1, "shell")


def _read_recipes(text: str, file: str) -> Iterator[Part]:
    for offset, line in _joined_lines(text):
        if line.startswith(("\t", "    ")):
            yield Part(Kind.CODE, line.strip().lstrip("@-").replace("$$", "$"), file, offset + 1, "shell")


def _joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with those that a backslash joins to it, and its number from 0."""
    start, joined = 0, ""
    for offset, line in enumerate(text.split("\n")):
        if not joined:
            start = offset
        if line.endswith("\\") and len(joined) < 20_000:
            joined += line[:-1] + " "
            continue
        yield start, joined + line
        joined = ""


def is_markup(text: str) -> bool:
    """Return whether a text is a document of XML, whatever it is named."""
    return _MARKUP.match(text) is not None


def text_of_markup(text: str) -> str:
    """Return what markup says between its tags and in attributes that hold more than a word, on the same lines."""

    def said(tag: re.Match[str]) -> str:
        values = " ".join(_ATTRIBUTE.findall(tag[0])) if " " in tag[0] else ""
        return f" {values} " + "\n" * tag[0].count("\n") if values else "\n" * tag[0].count("\n")

    if _GONE not in text:
        # Most tags say nothing. What takes their place keeps the letters around them apart.
        text = _PLAIN_TAG.sub(_GONE, text)
    return "\n".join([line.replace(_GONE, "").strip() for line in _TAG.sub(said, text).split("\n")])


def read_markup(text: str, file: str) -> Iterator[Part]:
    """Yield the scripts, handlers and remarks of a document in HTML or XML."""
    line, counted = 1, 0
    for start, end in (*_scripts(text), *(match.span(1) for match in _HANDLER.finditer(text))):
        line += text.count("\n", counted, start) if start >= counted else -text.count("\n", start, counted)
        counted = start
        yield Part(Kind.CODE, text[start:end].strip("'\""), file, line, "javascript")
    for match in _COMMENT.finditer(text):
        yield Part(Kind.COMMENT, match[1], file, text.count("\n", 0, match.start(1)) + 1, hidden=True)


def _scripts(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each script begins and ends; one without an end is the rest of the text, as browsers take it."""
    at = 0
    while (opened := _SCRIPT_TAG.search(text, at)) is not None:
        closed = _SCRIPT_END.search(text, opened.end())
        at = closed.end() if closed is not None else len(text)
        yield opened.end(), closed.start() if closed is not None else len(text)
