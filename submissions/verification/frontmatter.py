"""Read the frontmatter of a SKILL.md: a small, strict subset of YAML in which every scalar is a string."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

import yaml

from submissions.verification.findings import Finding, FindingKind, Severity

MAX_DEPTH = 6
MAX_NODES = 1000
# Checked before PyYAML runs, whose time grows with the square of the nesting of brackets on a line.
MAX_BRACKET_DEPTH = 100
# One frontmatter value: text, list or map, nested.
Value = str | list["Value"] | dict[str, "Value"]

_FENCE = re.compile(r"---[ \t]*")
_PLAIN_TAGS = frozenset({f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map")})
_UTF8_BOM = b"\xef\xbb\xbf"
_BOMS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


class FrontmatterError(Exception):
    """Raised inside this package for the first problem that stops the reader; ``finding`` describes it."""

    def __init__(self, finding: Finding) -> None:
        """Keep the finding."""
        super().__init__(finding.title)
        self.finding = finding


@dataclass(frozen=True)
class SkillDocument:
    """A SKILL.md: ``text`` without byte-order mark and with LF line ends, and the map of its frontmatter."""

    text: str
    fields: dict[str, Value]


def problem(rule: str, title: str, *, file: str, line: int | None = None, excerpt: str = "", advice: str) -> Finding:
    """Return a finding about the format of SKILL.md, which stops a package.

    ``rule`` is the rule's id without its prefix ``format.``. ``title``, ``excerpt`` and ``advice`` are shown to the
    author. ``file`` and ``line`` (from 1, None for the whole file) are its place.
    """
    return Finding(
        rule_id=f"format.{rule}",
        severity=Severity.MEDIUM,
        kind=FindingKind.FORMAT,
        title=title,
        file=file,
        line=line,
        excerpt=excerpt,
        why="Agents and registries could not read this skill, or would read it in different ways.",
        advice=advice,
    )


def read_skill_md(data: bytes, *, file: str, max_bytes: int) -> SkillDocument:
    """Read a SKILL.md from its bytes.

    ``file`` is the path that findings show. ``max_bytes`` bounds the frontmatter alone. Raises FrontmatterError for
    the first thing that cannot be read.
    """
    return _parse(_decode(data, file=file), file=file, max_bytes=max_bytes)


def _decode(data: bytes, *, file: str) -> str:
    if not data.strip():
        raise FrontmatterError(
            problem("empty", "SKILL.md is empty", file=file, advice="Write a frontmatter and instructions into it.")
        )
    start = len(_UTF8_BOM) if data.startswith(_UTF8_BOM) else 0
    data = data[start:]
    encoding = next((name for mark, name in _BOMS if data.startswith(mark)), None)
    if encoding is not None:
        raise FrontmatterError(
            problem("encoding", f"SKILL.md is {encoding}, not UTF-8", file=file, advice="Save the file as UTF-8.")
        )
    if b"\0" in data:
        offset = data.index(b"\0")
        raise FrontmatterError(
            problem(
                "binary",
                f"SKILL.md is not a text file: a zero byte at offset {start + offset}",
                file=file,
                line=data.count(b"\n", 0, offset) + 1,
                advice="SKILL.md must be plain UTF-8 text; put binary files beside it.",
            )
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FrontmatterError(
            problem(
                "encoding",
                f"SKILL.md is not UTF-8: byte 0x{data[error.start]:02x} at offset {start + error.start}",
                file=file,
                line=data.count(b"\n", 0, error.start) + 1,
                advice="Save the file as UTF-8.",
            )
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _parse(text: str, *, file: str, max_bytes: int) -> SkillDocument:
    lines = text.split("\n")
    if not _FENCE.fullmatch(lines[0]):
        raise FrontmatterError(
            problem(
                "frontmatter-missing",
                "SKILL.md has no frontmatter",
                file=file,
                line=1,
                excerpt=lines[0],
                advice="Begin the file with a line of three dashes, then name and description, then three dashes.",
            )
        )
    end = next((number for number, line in enumerate(lines[1:], 1) if _FENCE.fullmatch(line)), None)
    if end is None:
        raise FrontmatterError(
            problem(
                "frontmatter-open",
                "The frontmatter of SKILL.md is not closed",
                file=file,
                line=1,
                advice="End the frontmatter with a line of three dashes.",
            )
        )
    source = "\n".join(lines[1:end])
    if _bracket_depth(source) > MAX_BRACKET_DEPTH:
        raise FrontmatterError(
            problem(
                "yaml-size",
                "The frontmatter is nested too deeply",
                file=file,
                line=1,
                advice="Keep to plain `key: value` lines.",
            )
        )
    if len(source.encode()) > max_bytes:
        raise FrontmatterError(
            problem(
                "frontmatter-size",
                f"The frontmatter of SKILL.md is larger than {max_bytes // 1024} KiB",
                file=file,
                line=1,
                advice="Move text from the frontmatter into the body.",
            )
        )
    return SkillDocument(text, _Reader(source, file).read())


def _bracket_depth(source: str) -> int:
    depth = deepest = 0
    for character in source:
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


class _Reader:
    """Builds plain values from the events of PyYAML's parser, so that no tag ever constructs an object."""

    def __init__(self, source: str, file: str) -> None:
        self._source = source.split("\n")
        self._file = file
        self._nodes = 0
        self._events = yaml.parse(source + "\n", Loader=yaml.SafeLoader)

    def read(self) -> dict[str, Value]:
        try:
            value: Value = ""
            documents = 0
            for event in self._events:
                if isinstance(event, yaml.DocumentStartEvent):
                    documents += 1
                    if documents > 1 or event.tags or event.version:
                        raise self._error("yaml", "The frontmatter has YAML directives or several documents", event)
                elif isinstance(event, yaml.NodeEvent):
                    value = self._value(event, depth=1)
        except yaml.YAMLError as error:
            raise self._syntax_error(error) from None
        if not isinstance(value, dict):
            raise FrontmatterError(
                problem(
                    "frontmatter-shape",
                    "The frontmatter of SKILL.md is not a list of `key: value` lines",
                    file=self._file,
                    line=1,
                    advice="Write at least `name: ...` and `description: ...`, each on a line of its own.",
                )
            )
        return value

    def _value(self, event: yaml.NodeEvent, depth: int) -> Value:
        self._nodes += 1
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise self._error("yaml-alias", "The frontmatter uses YAML anchors or aliases", event)
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            raise self._error("yaml-size", "The frontmatter is nested too deeply or has too many values", event)
        tag = cast("str | None", getattr(event, "tag", None))
        if tag not in {None, "!"} and tag not in _PLAIN_TAGS:
            raise self._error("yaml-tag", "The frontmatter uses YAML tags", event)
        if isinstance(event, yaml.ScalarEvent):
            return str(event.value)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Value] = []
            for item in self._events:
                if isinstance(item, yaml.SequenceEndEvent):
                    break
                items.append(self._value(cast("yaml.NodeEvent", item), depth + 1))
            return items
        return self._mapping(depth)

    def _mapping(self, depth: int) -> dict[str, Value]:
        mapping: dict[str, Value] = {}
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self._value(cast("yaml.NodeEvent", event), depth + 1)
            if not isinstance(key, str):
                raise self._error("yaml-key", "The frontmatter has a key that is not plain text", event)
            if key in mapping:
                raise self._error("duplicate-key", f"The frontmatter has the key {key[:64]!r} twice", event)
            mapping[key] = self._value(cast("yaml.NodeEvent", next(self._events)), depth + 1)
        return mapping

    def _error(self, rule: str, title: str, event: yaml.Event) -> FrontmatterError:
        line = event.start_mark.line if event.start_mark is not None else 0
        return FrontmatterError(
            problem(
                rule,
                title,
                file=self._file,
                line=line + 2,
                excerpt=self._line(line),
                advice="Keep to plain `key: value` lines, every key once, without anchors, aliases and tags.",
            )
        )

    def _syntax_error(self, error: yaml.YAMLError) -> FrontmatterError:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = mark.line if mark is not None else None
        reason = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable")
        return FrontmatterError(
            problem(
                "yaml",
                f"The frontmatter is not valid YAML: {reason}",
                file=self._file,
                line=None if line is None else line + 2,
                excerpt="" if line is None else self._line(line),
                advice='Put a value that contains ": " or begins with a special character into quotes.',
            )
        )

    def _line(self, number: int) -> str:
        return self._source[number] if number < len(self._source) else ""
