"""Read the macros of old office files and of ``vbaProject.bin``; a macro is text here and is never run."""

# olefile ships no types.
# mypy: disable-error-code="import-untyped"

from __future__ import annotations

import io
import re
import struct
from dataclasses import dataclass, field
from typing import Final

import olefile

OLE_MAGIC: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_MOST_STREAMS: Final = 400
_LONGEST_STREAM: Final = 4_000_000
_LONGEST_MACRO: Final = 300_000
_MOST_STARTS: Final = 50
# What one chunk may hold; a hostile one says more.
_CHUNK: Final = 4096
# A container of [MS-OVBA] 2.4.1 begins with 1, then comes the header of a chunk, whose bits 12 to 14 are 011. The text
# of a module begins with "Attribute", packed as letters or, in a chunk that is not packed, as it is.
_START: Final = re.compile(rb"\x01.(?:[\xb0-\xbf]\x00|[\x30-\x3f])(?=Attribut|ATTRIBUT|attribut)", re.DOTALL)
_BESIDE: Final = re.compile(r"(?:dir|project\w*|_vba_project\w*|__srp_\w*)\Z", re.IGNORECASE)


@dataclass
class OldOffice:
    """What a compound file holds: the text of its macros, the names of packed programs, and why a part is unread."""

    macros: str = ""
    packages: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def read_compound(data: bytes) -> OldOffice:
    """Return the macros and packages of a compound file (the container of old office documents), within limits."""
    found = OldOffice()
    try:
        with olefile.OleFileIO(io.BytesIO(data)) as held:
            streams = held.listdir()
            if len(streams) > _MOST_STREAMS:
                found.unread.append(f"Only {_MOST_STREAMS:,} of the {len(streams):,} streams in it were looked at.")
            for path in streams[:_MOST_STREAMS]:
                _read_stream(held, path, found)
    except (OSError, ValueError, IndexError, KeyError, TypeError, AttributeError, RecursionError, struct.error):
        found.unread.append("It is damaged, so that macros in it were not read.")
    return found


def _read_stream(held: olefile.OleFileIO, path: list[str], found: OldOffice) -> None:
    name = path[-1]
    if name.endswith("Ole10Native"):
        found.packages.append("/".join(path).replace("\x01", ""))
        return
    if len(path) < 2 or path[-2].upper() != "VBA" or _BESIDE.match(name):
        return
    with held.openstream(path) as stream:
        content = stream.read(_LONGEST_STREAM)
    text = _module(content)
    if not text:
        found.unread.append(f"Its macro {name!r} is packed in a way that is not read here.")
    found.macros = (found.macros + text + "\n")[:_LONGEST_MACRO]


def _module(content: bytes) -> str:
    for _number, match in zip(range(_MOST_STARTS), _START.finditer(content), strict=False):
        text = unpacked(content[match.start() :]).decode("latin-1")
        if text.lower().startswith("attribut"):
            return text.replace("\r\n", "\n").replace("\r", "\n")
    return ""


def unpacked(container: bytes) -> bytes:
    """Return what a container of [MS-OVBA] 2.4.1 holds, as far as it is sound and at most 300,000 bytes of it."""
    found = bytearray()
    at = 1
    while at + 2 <= len(container) and len(found) < _LONGEST_MACRO:
        header = int.from_bytes(container[at : at + 2], "little")
        if header >> 12 & 0b111 != 0b011:
            break
        end = min(at + (header & 0x0FFF) + 3, len(container))
        if header & 0x8000:
            _unpack_chunk(container[at + 2 : end], found)
        else:
            found += container[at + 2 : end]
        at = end
    return bytes(found)


def _unpack_chunk(chunk: bytes, found: bytearray) -> None:
    start, at = len(found), 0
    while at < len(chunk) and len(found) - start <= _CHUNK:
        flags = chunk[at]
        at += 1
        for bit in range(8):
            if at >= len(chunk):
                return
            if not flags >> bit & 1:
                found.append(chunk[at])
                at += 1
                continue
            token = int.from_bytes(chunk[at : at + 2], "little")
            at += 2
            bits = max((len(found) - start - 1).bit_length(), 4)
            back, count = (token >> (16 - bits)) + 1, (token & (0xFFFF >> bits)) + 3
            if back > len(found) - start:
                return
            for _one in range(count):
                found.append(found[-back])
