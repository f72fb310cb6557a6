"""The rules: a table of what each finding means, read from rules.toml."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

VERSION: Final = "10"
"""The version of the engine, which results are keyed by: raise it with every change of what is read or judged."""

MOST_FINDINGS: Final = 300
MEASURED: Final = Path(__file__).with_name("measured.json")
"""What each rule held when it was last measured, written by `manage.py rules --measured`."""


@dataclass(frozen=True)
class Rule:
    """One rule: ``why`` it matters, ``advice`` for the author, ``severity`` and ``kind`` as findings have them."""

    id: str
    title: str
    why: str
    advice: str
    severity: str
    kind: str


def _read() -> Mapping[str, Rule]:
    table = tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))
    return {name: Rule(name, **fields) for name, fields in table.items()}


RULES: Final = _read()


def read_measured() -> dict[str, Any]:
    """Return what each rule held when it was last measured: ``version``, ``samples`` by label, and ``rules`` by id."""
    found: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return found
