"""Read the files of a skill from the disk, each as what it is, and say which were not read."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Final

from submissions.verification.engine.byte_patterns import BytePattern, byte_patterns
from submissions.verification.engine.guessing import guess_language
from submissions.verification.engine.manifests import is_markup, read_manifest, read_markup, read_object, text_of_markup
from submissions.verification.engine.markdown import read_markdown
from submissions.verification.engine.normal import normal_text, with_newlines
from submissions.verification.engine.office import DOCUMENT_MAGIC, read_document
from submissions.verification.engine.packages import is_package_file
from submissions.verification.engine.parts import Kind, Part
from submissions.verification.engine.pictures import NOT_READ, is_picture, named_pictures, text_behind
from submissions.verification.engine.vocabulary import SCRIPT_LANGUAGES
from submissions.verification.file_kinds import is_code

MAX_FILES: Final = 2000
MAX_FILE: Final = 1_500_000
_END: Final = 300_000
MAX_TOTAL: Final = 12_000_000
# Nothing that a person wrote has such a line, and a pattern must not walk along it.
MAX_LINE: Final = 20_000
_MEDIA: Final = re.compile(
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF....(?:WEBP|WAVE|AVI )|\x00\x00\x01\x00|wOFF|wOF2|\x00\x01\x00\x00"
    rb"|OTTO|ttcf|ID3|OggS|fLaC|....ftyp|\x1aE\xdf\xa3",
    re.DOTALL,
)
_SHEBANG: Final = re.compile(r"#![^\n]{0,80}\b(sh|bash|zsh|dash|ksh|python3?|node|perl|ruby|php|osascript|deno|bun)\b")
_TABLES: Final = frozenset(
    {".csv", ".tsv", ".jsonl", ".ndjson", ".geojson", ".fasta", ".vcf", ".po", ".srt", ".map", ".lock"}
)
_TEXTS: Final = frozenset(
    {"", ".md", ".mdx", ".markdown", ".txt", ".rst", ".adoc", ".mdc", ".prompt", ".tmpl", ".j2", ".template"}
)


_FEW: Final = 40
_BEFORE: Final = 400
_AFTER: Final = 40
_OBJECTS: Final = frozenset({".json", ".jsonc", ".ipynb"})
_LONGEST_DOCUMENT: Final = 200_000
_NOT_CODE: Final = frozenset({"", "markdown", "json", "yaml", "toml", "ini", "html", "sql"})
_RUNS: Final = re.compile(
    r"(?<![\w./-])(sh|bash|zsh|source|python3?|node|perl|ruby|php|deno run|bun)\s+(?:-[\w-]+\s+){0,3}"
    r"[\"']?(?:[\w.$@{}-]+/){0,6}([\w-][\w.-]*\.\w{1,12})\b"
)


@dataclass
class SkillParts:
    """What a skill consists of: its parts in the order of its files, what was left unread, and disguises of letters.

    ``unread`` and ``disguises`` are tuples of a file and a sentence, and of a file, a line and a kind. ``documents``
    are the texts of the files whose names are not those of code, within a length. ``patterns`` are those of bytes.
    """

    parts: list[Part] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)
    disguises: list[tuple[str, int, str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    documents: dict[str, str] = field(default_factory=dict)
    patterns: list[BytePattern] = field(default_factory=list)


def read_skill(root: Path) -> SkillParts:
    """Read every file below ``root`` within the limits of this module; links are not followed."""
    skill = SkillParts()
    total = 0
    pictures: list[str] = []
    paths = sorted(_files(root), key=lambda path: (path.name != "SKILL.md", path.as_posix()))
    for number, path in enumerate(paths):
        name = path.relative_to(root).as_posix()
        skill.names.append(name)
        size = path.stat().st_size
        if number >= MAX_FILES or total + min(size, MAX_FILE) > MAX_TOTAL:
            skill.unread.append((name, "The skill has more files or text than this engine reads."))
            continue
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
            if data.startswith(DOCUMENT_MAGIC):
                # What a document lists is at its end, so that it is read as a whole.
                data += file.read(MAX_TOTAL - len(data))
            elif len(data) > MAX_FILE:
                # What is put behind a lot of text is at its end. Lines of the end are counted without those between.
                file.seek(-_END, os.SEEK_END)
                data = data[: MAX_FILE - _END] + b"\n\n" + file.read(_END)
        skill.patterns += byte_patterns(data, name)
        if (document := read_document(data, name)) is not None:
            skill.parts += document.parts
            skill.unread += [(name, why) for why in document.unread]
            total += sum(len(part.text) for part in document.parts)
            # A text that only begins as a PDF is still one to an agent.
            if not data.startswith(b"%PDF-") or not _is_plain(data):
                continue
        if is_picture(data):
            pictures.append(name)
            if behind := text_behind(data):
                _read_file(behind, name, skill)
            continue
        if (text := _text_of(data, name, skill)) is None:
            continue
        if size > MAX_FILE and PurePosixPath(name).suffix.lower() not in _TABLES:
            skill.unread.append((name, f"Of its {size:,} bytes only {MAX_FILE:,} at its beginning and end were read."))
        total += len(data)
        _read_file(text, name, skill)
    skill.parts += _run_by_name(skill)
    skill.unread += [(name, NOT_READ) for name in named_pictures(pictures, skill.parts)]
    return skill


def _run_by_name(skill: SkillParts) -> list[Part]:
    """Return as code the files whose names are those of data or text, but which the skill runs."""
    run: dict[str, str] = {}
    named = {PurePosixPath(name).name: name for name in skill.documents}
    # Of many names only how they end is looked for, which few have in many ways.
    ends = {PurePosixPath(name).suffix for name in named} - {""} if len(named) >= _FEW else set(named)
    for part in skill.parts:
        for match in _runs_in(part.text, sorted(ends)):
            run.setdefault(
                match[2], SCRIPT_LANGUAGES.get(match[1].rstrip("3"), "shell" if match[1] == "source" else "javascript")
            )
    return [
        Part(Kind.CODE, skill.documents[named[base]], named[base], 1, language)
        for base, language in run.items()
        if base in named
    ]


def _runs_in(text: str, ends: Sequence[str]) -> Iterator[re.Match[str]]:
    """Yield the commands that run a file; the ``ends`` of names are looked for first, which is quicker by far."""
    for name in ends:
        at = text.find(name, 0, _LONGEST_DOCUMENT)
        while at >= 0:
            end = at + len(name)
            yield from _RUNS.finditer(text, max(0, at - _BEFORE), min(end + _AFTER, _LONGEST_DOCUMENT))
            at = text.find(name, end, _LONGEST_DOCUMENT)


def _files(root: Path) -> Iterator[Path]:
    waiting = [root]
    while waiting:
        for path in waiting.pop().iterdir():
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                waiting.append(path)
            elif stat.S_ISREG(mode):
                yield path


def _is_plain(data: bytes) -> bool:
    try:
        return b"\0" not in data and bool(data.decode())
    except UnicodeDecodeError:
        return False


def _text_of(data: bytes, name: str, skill: SkillParts) -> str | None:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    if b"\0" not in data:
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return data.decode("latin-1")
    if _MEDIA.match(data) is None:
        skill.unread.append((name, "It is neither text nor a known kind of media."))
    return None


def _read_file(text: str, name: str, skill: SkillParts) -> None:
    text, disguises = normal_text(with_newlines(text))
    skill.disguises += [(name, line + 1, kind) for kind, line in disguises.items()]
    whole = text
    if len(text) > MAX_LINE:
        text = _without_long_lines(text)
    suffix = PurePosixPath(name).suffix.lower()
    language = _language(text, name, suffix)
    if name != "SKILL.md" and len(text) <= _LONGEST_DOCUMENT and (language in _NOT_CODE or suffix in _TABLES):
        skill.documents[name] = text
    if suffix in _TABLES:
        skill.parts.append(Part(Kind.DATA, text[:100_000], name))
        return
    if is_package_file(name):
        skill.parts.append(Part(Kind.DATA, text, name))
    if language == "markdown" or (suffix in _TEXTS and language == ""):
        for part in read_markdown(text, name):
            skill.parts.append(part)
            skill.parts += parts_within(part)
        return
    # A line that is broken is no JSON any longer.
    held = list(read_manifest(whole if suffix in _OBJECTS else text, name))
    if whole is not text:
        held = [replace(one, text=_without_long_lines(one.text)) if len(one.text) > MAX_LINE else one for one in held]
    skill.parts += held
    if language == "" and not held:
        _read_unnamed(text, name, skill)
        return
    kind = Kind.DATA if language in {"json", "yaml", "toml", "ini", "html", ""} or held else Kind.CODE
    skill.parts.append(Part(kind, text, name, 1, language))


def _read_unnamed(text: str, name: str, skill: SkillParts) -> None:
    """Read a text whose name tells nothing: as the code that it looks like, or else as a document."""
    if is_markup(text):
        skill.parts += read_markup(text, name)
        skill.parts.append(Part(Kind.DATA, text, name))
        # A schema is nearly all tags, and would be read as thousands of commands.
        text = text_of_markup(text)
    language = guess_language(text) or ("other" if is_code(name) else "")
    if language:
        skill.parts.append(Part(Kind.CODE, text, name, 1, language))
        return
    skill.parts += read_markdown(text, name)


def parts_within(part: Part) -> Iterator[Part]:
    """Yield the parts of a manifest that a document shows, and those of a document in a fence."""
    if part.kind is not Kind.CODE or part.inline:
        return
    if part.language == "json" and (
        '"scripts"' in part.text or '"hooks"' in part.text or '"mcpServers"' in part.text or '"command"' in part.text
    ):
        yield from read_object(part.text, part.file, part.line)
    elif part.language in {"markdown", "text", ""}:
        yield Part(Kind.PROSE, part.text, part.file, part.line, "fenced", part.heading, part.lead)
    elif part.language == "yaml" and "run:" in part.text:
        for inner in read_manifest(part.text, "x.yml"):
            yield Part(Kind.CODE, inner.text, part.file, part.line + inner.line - 1, "shell", part.heading, part.lead)


def _language(text: str, name: str, suffix: str) -> str:
    if (match := _SHEBANG.match(text)) is not None:
        word = match[1]
        return "python" if word.startswith("python") else SCRIPT_LANGUAGES.get(word, "javascript")
    base = PurePosixPath(name).name.lower()
    if base.startswith("dockerfile") or base in {"makefile", "justfile"}:
        return base.partition(".")[0]
    return SCRIPT_LANGUAGES.get(suffix.removeprefix("."), "")


def _without_long_lines(text: str) -> str:
    """Return ``text`` with a line that is too long broken at blanks and semicolons, where that changes no meaning.

    Its lines are then longer in number, so places after it are too high; such a file is made by a program.
    """
    lines = text.split("\n")
    if all(len(line) <= MAX_LINE for line in lines):
        return text
    whole = []
    for line in lines:
        while len(line) > MAX_LINE:
            cut = max(line.rfind(";", 0, MAX_LINE), line.rfind(" ", 0, MAX_LINE)) + 1 or MAX_LINE
            whole.append(line[:cut])
            line = line[cut:]
        whole.append(line)
    return "\n".join(whole)
