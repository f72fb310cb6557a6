"""The examples of the documents: blocks of code and commands in running text, as a reader of the page sees them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.end_to_end.processes import ROOT

DOCUMENTS: Final = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
# What comes before a command: another account, another interpreter's folder.
_PREFIXES: Final = ("runuser -u vskill -- ", ".venv/bin/")


@dataclass(frozen=True)
class Block:
    """A block of code: its document, line, the headings above it, its language ('' where it is indented), its text."""

    document: Path
    line: int
    headings: tuple[str, ...]
    language: str
    text: str

    @property
    def place(self) -> str:
        """Return where it is, as an editor takes it."""
        return f"{self.document.relative_to(ROOT)}:{self.line}"

    def lines(self) -> list[str]:
        """Return its lines without comments and empty ones; one that ends in a backslash goes on in the next."""
        joined = self.text.replace("\\\n", " ")
        return [line for line in (without_comment(line) for line in joined.splitlines()) if line]


@dataclass(frozen=True)
class Command:
    """A command line of a document, without what only says where and as whom it runs; ``span``: in running text."""

    place: str
    line: str
    span: bool = False

    def words(self) -> list[str]:
        """Return the words, as a shell splits them."""
        return shlex.split(self.line)


def without_comment(line: str) -> str:
    """Return a line without the comment at its end."""
    return re.sub(r"(^|\s)#\s.*$", "", line).strip()


def bare(line: str) -> str:
    """Return a command line without the prefixes that do not change what it does."""
    for prefix in _PREFIXES:
        line = line.removeprefix(prefix)
    return line.removeprefix("python ") if line.startswith("python manage.py") else line


@cache
def _tokens(document: Path) -> list[Token]:
    return MarkdownIt().enable("table").parse(document.read_text(encoding="utf-8"))


@cache
def blocks(document: Path) -> tuple[Block, ...]:
    """Return the blocks of code of a document."""
    found: list[Block] = []
    headings: list[str] = []
    tokens = _tokens(document)
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            depth = int(token.tag[1])
            headings = [*headings[: depth - 1], tokens[place + 1].content]
        elif token.type in ("fence", "code_block"):
            line = (token.map or [0])[0] + 1
            found.append(Block(document, line, tuple(headings), token.info.strip(), token.content))
    return tuple(found)


def all_blocks() -> list[Block]:
    """Return the blocks of code of every document."""
    return [block for document in DOCUMENTS for block in blocks(document)]


def spans(document: Path) -> Iterator[tuple[str, str]]:
    """Yield each piece of code in running text, with the place of its paragraph."""
    for token in _tokens(document):
        for child in token.children or []:
            if child.type == "code_inline":
                yield f"{document.relative_to(ROOT)}:{(token.map or [0])[0] + 1}", child.content


def commands() -> list[Command]:
    """Return every command line of the documents, those in running text included."""
    found = [
        Command(block.place, bare(line)) for block in all_blocks() if block.language == "" for line in block.lines()
    ]
    starts = ("manage.py ", "make ", "python -m ", ".venv/bin/", "curl ")
    for document in DOCUMENTS:
        found += [Command(place, bare(text), True) for place, text in spans(document) if text.startswith(starts)]
    return found


def section(document: str, *headings: str) -> list[Block]:
    """Return the blocks of code below the headings of one document, of which there has to be one at least."""
    found = [block for block in blocks(ROOT / document) if block.headings[-len(headings) :] == headings]
    assert found, f"{document} has no code below {' / '.join(headings)}"
    return found
