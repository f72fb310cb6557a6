r"""Sixty shapes of hostile skills and forty honest look-alikes, all inert: never run, and with hosts that do not exist.

The kinds ``fresh-`` and ``later-`` are variants of other attacks, written without a look at the rules, to see how far
these generalise.

Each file in ``fixtures`` is one skill: a line ``=== PATH`` begins a file of it. ``\u{200b}`` stands for a character,
``PATH|hex`` for bytes, ``ARCHIVE!MEMBER`` for a file in a zip archive, and ``<<blank 100>>``, ``<<comments 100>>`` and
``<<words 100>>`` for that many empty lines, comment lines and bytes of words.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

FIXTURES: Final = Path(__file__).with_name("fixtures")
_BULK: Final[dict[str, Callable[[int], str]]] = {
    "blank": lambda number: "\n" * number,
    "comments": lambda number: "".join(f"# note {one}\n" for one in range(number)),
    "words": lambda number: ("alpha beta gamma delta\n" * (number // 23 + 1))[:number] + "\n",
}


def names(kind: str) -> list[str]:
    """Return the names of the skills of a kind, which is a folder of ``fixtures``."""
    return sorted(path.stem for path in (FIXTURES / kind).glob("*.txt"))


def files_of(kind: str, name: str) -> dict[str, bytes]:
    """Return the files of one skill; a SKILL.md without frontmatter gets an ordinary one."""
    parts = re.split(r"^=== (.+)\n", (FIXTURES / kind / f"{name}.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    files: dict[str, bytes] = {}
    archives: dict[str, dict[str, bytes]] = {}
    for path, text in zip(parts[1::2], parts[2::2], strict=True):
        content = _content(text)
        if path.endswith("|hex"):
            files[path.removesuffix("|hex")] = bytes.fromhex(text)
        elif "!" in path:
            archive, _, member = path.partition("!")
            archives.setdefault(archive, {})[member] = content.encode()
        else:
            with_front = path == "SKILL.md" and not content.startswith("---\n")
            files[path] = (_front(name, content) + content if with_front else content).encode()
    return {**files, **{path: _zipped(members) for path, members in archives.items()}}


def _front(name: str, text: str) -> str:
    heading = re.sub(r"^#\s*(.*)$", r"\1", text.splitlines()[0])
    return f'---\nname: {name}\ndescription: "{heading}. Use it when the user asks for this."\n---\n'


def _content(text: str) -> str:
    text = re.sub(r"^<<(\w+) (\d+)>>\n", lambda match: _BULK[match[1]](int(match[2])), text, flags=re.MULTILINE)
    return re.sub(r"\\u\{([0-9a-f]+)\}", lambda match: chr(int(match[1], 16)), text)


def _zipped(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in sorted(members.items()):
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content)
    return file.getvalue()
