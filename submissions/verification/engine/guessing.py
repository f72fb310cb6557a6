"""Guess the language of text whose name does not tell it: a file of data that holds code, a string that is written."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Final

_LONGEST: Final = 100_000
_SHEBANG: Final = re.compile(r"#![^\n]{0,80}\b(sh|bash|zsh|dash|ksh|python3?|node|deno|bun|perl|ruby|php)\b")
_PYTHON: Final = re.compile(r"^[ \t]*(?:import \w|from [\w.]+ import |def \w+\(|exec\(|print\()", re.MULTILINE)
_JAVASCRIPT: Final = re.compile(
    r"\brequire\(['\"]|^[ \t]*(?:const|let|var) [\w{]|^import [\w{*].{0,200} from ['\"]"
    r"|\bfunction\b[^\n]{0,60}\{|=>\s*\{"
    r"|\bconsole\.log\(|\beval\(",
    re.MULTILINE,
)
_SHELL: Final = re.compile(
    r"^[ \t]*(?:(?:curl|wget|echo|export|sudo|chmod|mkdir|cat|bash|sh|eval|source|nohup|base64|nc|tar|crontab|cp|mv"
    r"|rm|find|printf|ssh|scp|python3?|node|git|set -)\s|if \[|for \w+ in |while |[A-Za-z_]\w*=[\"'$\w(])",
    re.MULTILINE,
)


def guess_language(text: str) -> str:
    """Return the name of a language of scripts, or an empty text for what looks like no code."""
    text = text[:_LONGEST]
    if (match := _SHEBANG.match(text)) is not None:
        word = match[1].rstrip("3")
        return {"node": "javascript", "deno": "javascript", "bun": "javascript"}.get(
            word, word if word in {"python", "perl", "ruby", "php"} else "shell"
        )
    if _PYTHON.search(text) is not None and _parses(text):
        return "python"
    if text.lstrip().startswith("<?php"):
        return "php"
    if _JAVASCRIPT.search(text) is not None:
        return "javascript"
    return "shell" if _SHELL.search(text) is not None else ""


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
