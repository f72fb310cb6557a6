"""One command of a shell: its words, and what goes into it and out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final


@dataclass
class Command:
    """One simple command: its words without quotes, what is substituted into them, where its output goes.

    ``line`` counts from 0. ``inner`` are the texts of substitutions, ``literal`` the words that single quotes protect.
    ``targets`` are the files that output is written to, ``sources`` those that input is read from; ``document`` is the
    text of a here-document. ``words`` do not change once ``name`` or ``program`` was asked for.
    """

    line: int
    words: list[str] = field(default_factory=list)
    inner: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    assigned: dict[str, str] = field(default_factory=dict)
    document: str = ""

    @cached_property
    def name(self) -> str:
        """Return the program's name without its folder, past prefixes such as sudo and variables."""
        return self.program[0].rsplit("/", 1)[-1].lower() if self.program else ""

    @cached_property
    def program(self) -> list[str]:
        """Return the words from the program on, past sudo, env, nohup, time and xargs with their options."""
        words = self.words
        index = 0
        while index < len(words) and (words[index] in _PREFIXES or (index and words[index].startswith("-"))):
            index += 1
        return words[index:]

    @property
    def text(self) -> str:
        """Return the words joined with spaces."""
        return " ".join(self.words)


_PREFIXES: Final = frozenset(
    {
        "(",
        ")",
        "done",
        "}",
        "sudo",
        "env",
        "nohup",
        "time",
        "xargs",
        "then",
        "do",
        "else",
        "if",
        "while",
        "!",
        "command",
        "doas",
        "{",
        "exec",
        "&",
        "until",
        "elif",
    }
)
