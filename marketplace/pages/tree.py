"""Show all files of a version as a tree, its folders with what they hold in sum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

# Deeper ones stand as far to the right as this, so that a narrow screen has room for names.
DEEPEST_INDENT: Final = 8


def tree(files: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the tree of ``files``, folders before files and each in the order of its name.

    A file is as ``scan_report.files`` gives it. A folder that holds nothing but one folder shares its row, as
    ``a/b/c``. A row has ``name``, ``indent`` from 0 to ``DEEPEST_INDENT`` and ``path``; that of a file has ``file``,
    that of a folder ``count``, ``size`` in bytes, ``findings`` and ``unread``, the number of files that no engine read.
    """
    folders: dict[str, Any] = {}
    for file in files:
        *parents, name = file["path"].split("/")
        inside = folders
        for parent in parents:
            # A slash cannot be in a name, so no file has the key of a folder.
            inside = inside.setdefault(f"{parent}/", {})
        inside[name] = file
    return _rows(folders)


def _rows(root: dict[str, Any]) -> list[dict[str, Any]]:
    """Walk without recursion, because a path may be deeper than the stack of Python."""
    rows: list[dict[str, Any]] = []
    waiting: list[tuple[str, str, int, dict[str, Any]]] = _below("", 0, root)
    while waiting:
        name, above, depth, inside = waiting.pop()
        row: dict[str, Any] = {"indent": min(depth, DEEPEST_INDENT), "depth": depth}
        if not name.endswith("/"):
            rows.append({**row, "name": name, "path": f"{above}{name}", "file": inside})
            continue
        while len(inside) == 1 and (only := next(iter(inside))).endswith("/"):
            name, inside = f"{name}{only}", inside[only]
        rows.append({**row, "name": name, "path": f"{above}{name}", "file": None})
        waiting += _below(f"{above}{name}", depth + 1, inside)
    _add_up(rows)
    return rows


def _below(above: str, depth: int, inside: dict[str, Any]) -> list[tuple[str, str, int, dict[str, Any]]]:
    """Return what is in a folder, the last first, as a stack is read."""
    names = sorted(inside, key=lambda name: (not name.endswith("/"), name.lower(), name), reverse=True)
    return [(name, above, depth, inside[name]) for name in names]


def _add_up(rows: list[dict[str, Any]]) -> None:
    """Give each folder what the rows below it come to; they follow it, and the last is read first."""
    sums: dict[int, dict[str, int]] = {}
    for row in reversed(rows):
        depth = row.pop("depth")
        if (file := row["file"]) is None:
            own = sums.pop(depth + 1, _nothing())
            row.update(own)
        else:
            own = {
                "count": 1,
                "size": file["size"],
                "findings": file["findings"] or 0,
                "unread": int(file["findings"] is None),
            }
        total = sums.setdefault(depth, _nothing())
        for name, number in own.items():
            total[name] += number


def _nothing() -> dict[str, int]:
    return {"count": 0, "size": 0, "findings": 0, "unread": 0}
