"""Read the frontmatter of a SKILL.md: a small, strict subset of YAML in which every scalar is a string.

What is no YAML at all is read a second time as Claude Code reads it (see ``lenient_yaml``), with a note.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeGuard, cast

import yaml

from submissions.verification.findings import Finding
from submissions.verification.format_findings import lint, problem
from submissions.verification.lenient_yaml import quote_values
from submissions.verification.skill_text import FrontmatterError, decode_skill_md

# The metadata that OpenClaw documents is seven deep.
MAX_DEPTH = 16
MAX_NODES = 1000
# Checked before PyYAML runs, whose time grows with the square of the nesting of brackets on a line.
MAX_BRACKET_DEPTH = 100
# One frontmatter value: text, list or map, nested.
Value = str | list["Value"] | dict[str, "Value"]

_FENCE = re.compile(r"---[ \t]*")
_PLAIN_TAGS = frozenset({f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map")})
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
# What YAML 1.2 reads as a number or a truth value when it is not quoted.
_NOT_TEXT = re.compile(
    r"[-+]?(\d[\d_]*(\.\d*)?|\.\d+)([eE][-+]?\d+)?|0x[0-9a-fA-F]+|0o[0-7]+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
    r"|true|True|TRUE|false|False|FALSE"
)


class _NotYaml(FrontmatterError):
    """Raised for text that is no YAML, as opposed to YAML that is not wanted here."""


@dataclass(frozen=True)
class SkillDocument:
    """A SKILL.md: ``text`` without byte-order mark and with LF line ends, and the map of its frontmatter.

    ``untyped`` are the fields whose value is a number or a truth value for other readers, because it is not quoted.
    ``findings`` say how it had to be read.
    """

    text: str
    fields: dict[str, Value]
    untyped: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()


def read_skill_md(data: bytes, *, file: str, max_bytes: int) -> SkillDocument:
    """Read a SKILL.md from its bytes.

    ``file`` is the path that findings show. ``max_bytes`` bounds the frontmatter alone. Raises FrontmatterError for
    the first thing that cannot be read.
    """
    return _parse(decode_skill_md(data, file=file), file=file, max_bytes=max_bytes)


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
    reader = _Reader(source, file)
    findings: tuple[Finding, ...] = ()
    try:
        fields = reader.read()
    except _NotYaml as error:
        lenient = _Reader(quote_values(source), file)
        try:
            reader, fields, findings = lenient, lenient.read(), (_lenient_note(error.finding),)
        except FrontmatterError:
            raise error from None
    return SkillDocument(text, fields, frozenset(reader.untyped), findings)


def _lenient_note(finding: Finding) -> Finding:
    return lint(
        "lenient-yaml",
        f"{finding.title}. It was read as Claude Code does, with such values taken as text",
        finding.file,
        "Put the value into quotes: `npx skills` and `agentskills` leave this skill out as it is.",
        line=finding.line,
        excerpt=finding.excerpt,
    )


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
        self.untyped: set[str] = set()
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
            return "" if _is_plain(event) and event.value in _NULLS else str(event.value)
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
            value = cast("yaml.NodeEvent", next(self._events))
            if depth == 1 and _is_plain(value) and _NOT_TEXT.fullmatch(str(value.value)):
                self.untyped.add(key)
            mapping[key] = self._value(value, depth + 1)
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
        return _NotYaml(
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


def _is_plain(event: yaml.NodeEvent) -> TypeGuard[yaml.ScalarEvent]:
    """Return whether a value is written without quotes, so that YAML decides what it is."""
    return isinstance(event, yaml.ScalarEvent) and event.style is None and bool(event.implicit[0])
