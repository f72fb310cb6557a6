"""Read the pointers that a repository holds in the place of files which are kept in Git LFS."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_POINTER: Final = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n((?:ext-\d+-[^\n]+\n)*)"
    rb"oid sha256:([0-9a-f]{64})\nsize (\d{1,15})\n?"
)
# A pointer without extensions has 126 bytes or more, depending on the number of digits of the size.
POINTER_SIZES: Final = range(126, 145)


@dataclass(frozen=True, slots=True)
class Pointer:
    """The SHA-256 (hex) and the size in bytes of the object that a pointer stands for.

    An ``extended`` one stands for a file that a program of its author made the object of, so that the object is not it.
    """

    oid: str
    size: int
    extended: bool = False


def read_pointer(content: bytes) -> Pointer | None:
    """Return the pointer that the bytes of a file are, or None."""
    match = _POINTER.fullmatch(content)
    return Pointer(match[2].decode("ascii"), int(match[3]), bool(match[1])) if match is not None else None
