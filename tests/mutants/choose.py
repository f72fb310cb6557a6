"""Which of the mutants that cosmic-ray can make of a module are tried.

Imports nothing of the product or of the test tools: it runs in both virtual environments.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Position = tuple[int, int]
"""Line, from 1, and column, from 0 and in characters."""


@dataclass(frozen=True)
class Place:
    """One thing that an operator of cosmic-ray can change: its ``occurrence``-th in the module."""

    operator: str
    occurrence: int
    start: Position
    end: Position

    @property
    def family(self) -> str:
        """Return the operator without what it puts in place: ``ReplaceComparisonOperator`` of ``..._Lt_GtE``."""
        return self.operator.partition("/")[2].partition("_")[0]


def chosen(module: str, source: str, places: Iterable[Place], *, every: bool = False) -> list[Place]:
    """Return the places to try, in the order of the source.

    Annotations are left out: they are never evaluated, so that no test could notice. Of several replacements of one
    operator, such as ``<`` by each other comparison, one is taken unless ``every`` is true. Which one depends on its
    position in ``module`` alone, so that two runs over the same source try the same mutants.
    """
    annotations = list(annotated(source))
    kept: dict[object, Place] = {}
    for place in sorted(places, key=lambda place: _lot(module, place)):
        if any(start <= place.start and place.end <= end for start, end in annotations):
            continue
        key = place if every else (place.family, place.start, place.end)
        kept.setdefault(key, place)
    return sorted(kept.values(), key=lambda place: (place.start, place.operator, place.occurrence))


def annotated(source: str) -> Iterator[tuple[Position, Position]]:
    """Yield where the annotations of a module are."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        found: list[ast.expr | None] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(node.returns)
        elif isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
        for annotation in found:
            if annotation is not None:
                yield (
                    _position(lines, annotation.lineno, annotation.col_offset),
                    _position(lines, annotation.end_lineno or annotation.lineno, annotation.end_col_offset or 0),
                )


def _position(lines: list[str], line: int, column: int) -> Position:
    # ast counts bytes of UTF-8, parso characters.
    return line, len(lines[line - 1].encode()[:column].decode())


def _lot(module: str, place: Place) -> str:
    return hashlib.sha256(f"{module} {place}".encode()).hexdigest()
