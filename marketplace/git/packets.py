"""Packets (pkt-lines), of which both sides of git's protocol write their messages."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final

from marketplace.errors import MarketplaceError

_LENGTH: Final = 4
# The most that one packet holds, by the protocol, with its length.
_LONGEST: Final = 65520
_BAND: Final = b"\x01"
PART_BYTES: Final = _LONGEST - _LENGTH - len(_BAND)


class Mark(Enum):
    """A packet without a line: the end of a message, and of a part of one."""

    FLUSH = b"0000"
    DELIMITER = b"0001"


_MARKS: Final = {mark.value: mark for mark in Mark}


class MalformedRequest(MarketplaceError):
    """A body is no request in git's protocol; nothing was read or changed."""

    code = "malformed"


def packet(line: bytes) -> bytes:
    """Return ``line`` as one packet."""
    return b"%04x%s" % (len(line) + _LENGTH, line)


def band(part: bytes) -> bytes:
    """Return a part of a pack, of at most ``PART_BYTES``, as a packet of the side band that carries packs."""
    return packet(_BAND + part)


def read_packets(body: bytes) -> Iterator[bytes | Mark]:
    """Yield each line of a request without its newline, and each mark where it stands.

    Raises ``MalformedRequest`` for what is not written in packets.
    """
    place = 0
    while place < len(body):
        head = body[place : place + _LENGTH]
        if head in _MARKS:
            yield _MARKS[head]
            place += _LENGTH
            continue
        length = _read_length(head)
        if not _LENGTH < length <= _LONGEST or place + length > len(body):
            raise MalformedRequest("The body is not a request of git: it is not written in packets.")
        yield body[place + _LENGTH : place + length].removesuffix(b"\n")
        place += length


def _read_length(head: bytes) -> int:
    # int() would also take a sign, spaces and underscores.
    return int(head, 16) if len(head) == _LENGTH and all(byte in b"0123456789abcdefABCDEF" for byte in head) else 0
