"""Say which agents a skill states that it is made for: by the folder that it lies in, or by its ``compatibility``.

Nothing is guessed. A skill that states no agent has none here, and may well work with each of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from marketplace.records import SkillRecord

# Each agent with the folder in which its client keeps the skills of a project, and its names in sentences.
_FOLDERS: Final[Mapping[str, str]] = {
    ".claude": "claude-code",
    ".codex": "codex",
    ".cursor": "cursor",
    ".factory": "factory",
    ".gemini": "gemini-cli",
    ".github": "github-copilot",
    ".goose": "goose",
    ".kiro": "kiro",
    ".opencode": "opencode",
    ".openclaw": "openclaw",
    ".qwen": "qwen-code",
    ".roo": "roo-code",
    ".trae": "trae",
    ".windsurf": "windsurf",
}
_NAMES: Final[Mapping[str, re.Pattern[str]]] = {
    agent: re.compile(rf"\b(?:{name})\b", re.IGNORECASE)
    for agent, name in {
        "claude-code": "claude[ -]code",
        "codex": "(?:openai )?codex(?: cli)?",
        "cursor": "cursor",
        "factory": "factory(?: droid)?",
        "gemini-cli": "gemini[ -]cli",
        "github-copilot": "(?:github )?copilot",
        "goose": "goose",
        "kiro": "kiro",
        "opencode": "opencode",
        "openclaw": "openclaw",
        "qwen-code": "qwen[ -]code",
        "roo-code": "roo[ -]code",
        "trae": "trae",
        "windsurf": "windsurf",
    }.items()
}
AGENTS: Final = tuple(_NAMES)
# Words of other things as well, which name an agent only in a line that is nothing but a list of agents.
_COMMON: Final = frozenset({"cursor", "factory", "goose"})
_FOR: Final = re.compile(
    r"\b(?:designed|made|built|intended|written|works?|compatible|requires?|needs?|tested)\b", re.IGNORECASE
)
_NOT: Final = re.compile(r"\b(?:not|no|without|except|unlike|cannot|never)\b|n't\b", re.IGNORECASE)
_CLAUSE: Final = re.compile(r"[.;\n]")
_BETWEEN: Final = re.compile(r"\s*(?:,|/|&|\band\b|\bor\b)\s*", re.IGNORECASE)


def agents_of(record: SkillRecord) -> tuple[str, ...]:
    """Return the agents that a skill is made for, as it states itself, in the order of ``AGENTS``."""
    stated = {*_of_folders(record), *_of_text(record.compatibility)}
    return tuple(one for one in AGENTS if one in stated)


def _of_folders(record: SkillRecord) -> Iterator[str]:
    for path in (record.skill_path, *record.also_at):
        folders = path.split("/")
        # A client looks for skills in a folder of this name in its own.
        yield from (_FOLDERS[own] for own, kept in pairwise(folders) if own in _FOLDERS and kept == "skills")


def _of_text(compatibility: str) -> Iterator[str]:
    for clause in _CLAUSE.split(compatibility):
        listed = [one for one in _BETWEEN.split(clause.strip()) if one]
        if all(any(name.fullmatch(one) for name in _NAMES.values()) for one in listed):
            yield from (agent for agent, name in _NAMES.items() if name.search(clause))
        elif _FOR.search(clause) and not _NOT.search(clause):
            yield from (agent for agent, name in _NAMES.items() if agent not in _COMMON and name.search(clause))
