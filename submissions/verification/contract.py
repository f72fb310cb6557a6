"""The contract of a skill as it is stored: what it declares beside what it does, and what it refers to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vskill.hidden_characters import visible

_MOST_REFERENCES: Final = 200
_MOST_PLACES: Final = 5
_MOST_ROWS: Final = 20
_LONGEST: Final = 1024


def read_contract(value: Any) -> dict[str, Any]:
    """Return the contract in a document of an engine or in a stored result, with every text made safe to show.

    ``declares`` are fields of the front matter by name. ``does`` are what it does: ``name``, the words that declare it
    (``declared``, empty where it is not declared) and ``places``, pairs of a file and a line. ``chains`` lead from
    secrets to the network, or from a download to its execution; ``holds`` says that one is not declared. Each of
    ``references`` has ``kind``, ``name``, ``file``, ``line``, ``role`` and ``pinned``, and ``left`` counts those beyond
    the limit. Raises KeyError, TypeError, ValueError or AttributeError for anything else.
    """
    return {
        "declares": {visible(str(name), 40): visible(str(text), _LONGEST) for name, text in value["declares"].items()},
        "does": [
            {
                "name": visible(str(one["name"]), 40),
                "declared": visible(str(one["declared"]), 200),
                "places": _places(one),
            }
            for one in value["does"][:_MOST_ROWS]
        ],
        "chains": [
            {"name": visible(str(one["name"]), 40), "holds": bool(one["holds"]), "places": _places(one)}
            for one in value["chains"][:_MOST_ROWS]
        ],
        "references": [_reference(one) for one in value["references"][:_MOST_REFERENCES]],
        "left": int(value["left"]),
    }


def _places(one: Mapping[str, Any]) -> list[list[Any]]:
    return [[visible(str(file)), int(line)] for file, line in one["places"][:_MOST_PLACES]]


def _reference(one: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "kind": visible(str(one["kind"]), 20),
        "name": visible(str(one["name"]), 500),
        "file": visible(str(one["file"])),
        "line": int(one["line"]),
        "role": visible(str(one["role"]), 20),
        "pinned": visible(str(one["pinned"]), 20),
    }
