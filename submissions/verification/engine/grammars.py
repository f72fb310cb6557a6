"""The grammars of languages, each loaded when it is first needed, and what calls mean in them."""

from __future__ import annotations

import importlib
import resource
import time
import tomllib
import warnings
from collections.abc import Mapping
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Final

from tree_sitter import Language, Parser, Tree

LONGEST: Final = 100_000
# Of the processor. A grammar reads a hundred times as much in this time, but may take its square for what is no code.
_SECONDS: Final = 0.5
# This grammar takes each for the beginning of types within types, and its parser has no limit of its own for them.
_MOST_OPEN: Final = 4000
_PIECE: Final = 65_536
_PATIENCE: Final = 20
# What a parser may add to the most memory that was needed before. What is ambiguous takes a multiple of its length.
_MOST_KIB: Final = 100 * 1024
_GRAMMARS: Final = {
    "javascript": ("tree_sitter_typescript", "language_tsx"),
    "ruby": ("tree_sitter_ruby", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "php without marks": ("tree_sitter_php", "language_php_only"),
    "go": ("tree_sitter_go", "language"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "perl": ("tree_sitter_perl", "language"),
    "powershell": ("tree_sitter_powershell", "language"),
}
Calls = Mapping[str, tuple[str, ...]]
_TABLE: Final[Mapping[str, Mapping[str, list[str]]]] = tomllib.loads(
    Path(__file__).with_name("languages.toml").read_text(encoding="utf-8")
)


def has_grammar(language: str) -> bool:
    """Return whether code in ``language`` is read by a grammar."""
    return language in _GRAMMARS


def parse(text: str, language: str) -> Tree | None:
    """Return the tree of code, with errors in it for what is no code, or None for what takes its parser too much."""
    if language == "csharp" and text.count("<") > _MOST_OPEN:
        return None
    # Text that PHP evaluates has no mark at its beginning.
    parser = _parser("php without marks" if language == "php" and "<?" not in text else language)
    source = text.encode("utf-8", "replace")
    until = time.process_time() + _SECONDS
    most = _peak() + _MOST_KIB

    def read(start: int, _point: object) -> bytes:
        return source[start : start + _PIECE]

    asked = count()

    def is_late(_at: int, _has_error: bool) -> bool:
        # The clock costs more than what is parsed between two questions.
        return next(asked) % _PATIENCE == 0 and (time.process_time() > until or _peak() > most)

    try:
        return parser.parse(read, progress_callback=is_late)
    except ValueError:
        parser.reset()
        return None


def _peak() -> int:
    """Return the most memory that this process has had, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@lru_cache
def calls_of(language: str) -> Calls:
    """Return the names of calls by what they mean."""
    return {meaning: tuple(names) for meaning, names in _TABLE[language].items()}


@lru_cache
def _parser(language: str) -> Parser:
    module, function = _GRAMMARS[language]
    with warnings.catch_warnings():
        # Older grammars hand their address over as a number.
        warnings.simplefilter("ignore", DeprecationWarning)
        return Parser(Language(getattr(importlib.import_module(module), function)()))
