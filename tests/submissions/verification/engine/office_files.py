"""Make office documents for tests: zip archives of given members, and a compound file with the text of a macro."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping
from typing import Final

_SECTOR: Final = 512
_FREE: Final = 0xFFFFFFFF
_END: Final = 0xFFFFFFFE
_TABLE: Final = 0xFFFFFFFD


def office_file(members: Mapping[str, str]) -> bytes:
    """Return a document of these members; the text of ``vbaProject.bin`` becomes the macro of a compound file."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, compound(text) if name.endswith("vbaProject.bin") else text)
    return held.getvalue()


def packed(text: bytes) -> bytes:
    """Return ``text`` in chunks of [MS-OVBA] 2.4.1, each letter as it is."""
    found = bytearray(b"\x01")
    for start in range(0, len(text), 3000):
        piece = text[start : start + 3000]
        chunk = b"".join(b"\0" + piece[at : at + 8] for at in range(0, len(piece), 8))
        found += struct.pack("<H", 0xB000 | (len(chunk) - 1)) + chunk
    return bytes(found)


def compound(macro: str, name: str = "Module1") -> bytes:
    """Return a compound file with one module in the storage VBA."""
    source = ('Attribute VB_Name = "' + name + '"\n' + macro).replace("\n", "\r\n").encode("latin-1")
    stream = bytes(5000) + packed(source)
    stream += bytes(-len(stream) % _SECTOR)
    count = len(stream) // _SECTOR
    chain = [*range(3, 2 + count), _END] if count > 1 else [_END]
    table = [_TABLE, _END, *chain]
    table += [_FREE] * (_SECTOR // 4 - len(table))
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack("<IIIIIIIII", 0, 1, 1, 0, 4096, _END, 0, _END, 0)
    header += struct.pack("<I", 0) + struct.pack("<I", _FREE) * 108
    entries = (
        _entry("Root Entry", 5, child=1)
        + _entry("VBA", 1, child=2)
        + _entry(name, 2, start=2, size=len(stream))
        + bytes(128)
    )
    return header + struct.pack("<128I", *table) + entries + stream


def _entry(name: str, kind: int, *, child: int = _FREE, start: int = _END, size: int = 0) -> bytes:
    letters = (name + "\0").encode("utf-16-le")
    return (
        letters.ljust(64, b"\0")
        + struct.pack("<HBB", len(letters), kind, 1)
        + struct.pack("<III", _FREE, _FREE, child)
        + bytes(36)
        + struct.pack("<IQ", start, size)
    )
