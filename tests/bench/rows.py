"""The rows of a benchmark's report: what was measured, and whether it meets its bar."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One figure; ``bar`` says in words what it has to be, and ``holds`` whether it is (``None`` without a bar)."""

    area: str
    name: str
    value: float
    unit: str
    bar: str = ""
    holds: bool | None = None


def at_most(area: str, name: str, value: float, bar: float, unit: str = "x") -> Row:
    """Return a row whose bar is that ``value`` is at most ``bar``; both are in ``unit``."""
    return Row(area, name, value, unit, f"at most {bar:g} {unit}", value <= bar)


def at_least(area: str, name: str, value: float, bar: float, unit: str = "x") -> Row:
    """Return a row whose bar is that ``value`` is at least ``bar``; both are in ``unit``."""
    return Row(area, name, value, unit, f"at least {bar:g} {unit}", value >= bar)


def to_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the rows as JSON objects, with values rounded to four significant figures."""
    return [{**asdict(row), "value": _rounded(row.value)} for row in rows]


def from_json(rows: Iterable[dict[str, Any]]) -> list[Row]:
    """Return the rows of the objects that ``to_json`` returned."""
    return [Row(**row) for row in rows]


def write(rows: Sequence[Row], path: Path) -> None:
    """Write the rows into a JSON file, which is overwritten."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(to_json(rows), indent=1, ensure_ascii=False) + "\n")


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table for a terminal."""
    verdicts = {True: "holds", False: "MISSED", None: ""}
    cells = [("area", "what", "value", "unit", "bar", "")]
    cells += [(row.area, row.name, f"{_rounded(row.value):g}", row.unit, row.bar, verdicts[row.holds]) for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(6)]
    lines = []
    for line in cells:
        padded = [
            text.rjust(width) if column == 2 else text.ljust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _rounded(value: float) -> float:
    return round(value, max(0, 3 - math.floor(math.log10(abs(value))))) if value else 0.0
