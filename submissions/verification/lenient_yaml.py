"""Rewrite frontmatter that is not valid YAML the way Claude Code does before it reads it a second time.

A value on the line of its key that YAML would misread (``description: Use it: now``) becomes quoted text, and a tab at
the start of a line becomes two spaces. That was read in the program of Claude Code 2.1.332. Here a block scalar and a
flow list or map that is valid by itself stay as they are.
"""

from __future__ import annotations

import re
from typing import Final

import yaml

_LINE: Final = re.compile(r"([A-Za-z_-]+):[ \t]+(\S.*)")
_MISREAD: Final = re.compile(r"[{}\[\]*&#!|>%@`]|: ")
_BLOCK_SCALAR: Final = re.compile(r"[|>][-+0-9]{0,2}")


def quote_values(source: str) -> str:
    """Return the lines of ``source`` with misread values quoted and without tabs in front."""
    return "\n".join(_quoted(_without_tabs(line)) for line in source.split("\n"))


def _without_tabs(line: str) -> str:
    text = line.lstrip("\t")
    return "  " * (len(line) - len(text)) + text


def _quoted(line: str) -> str:
    match = _LINE.fullmatch(line.rstrip())
    if match is None:
        return line
    key, value = match.groups()
    if value[0] == value[-1] and value[0] in "\"'" and len(value) > 1:
        return line
    if _BLOCK_SCALAR.fullmatch(value) or not _MISREAD.search(value) or _is_flow(value):
        return line
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{key}: "{escaped}"'


def _is_flow(value: str) -> bool:
    """Return whether a value is a list or map in brackets that is valid by itself; nothing is built from it."""
    if (value[0], value[-1]) not in {("[", "]"), ("{", "}")}:
        return False
    try:
        return (
            sum(isinstance(event, yaml.DocumentStartEvent) for event in yaml.parse(value, Loader=yaml.SafeLoader)) == 1
        )
    except yaml.YAMLError:
        return False
