"""The outcome of the read of one key, which is a value or the reason why there is none, and how a row becomes one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from vskill.kv.codec import decode
from vskill.kv.errors import EntryUnavailable


class Status(StrEnum):
    """How the read of one key ended."""

    VALUE = "value"
    MISSING = "missing"
    EXPIRED = "expired"
    MALFORMED = "malformed"
    UNREADABLE = "unreadable"
    TIMED_OUT = "timed_out"


# Not frozen: a frozen one takes more than twice as long to make, and a scan makes a hundred thousand.
@dataclass(slots=True)
class Outcome:
    """The outcome of the read of one key.

    ``value``, ``version`` and ``metadata`` are set only where ``status`` is ``VALUE``; ``version`` is also set for a
    malformed entry, which exists. ``detail`` says why there is no value.
    """

    key: str
    status: Status
    value: Any = None
    version: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)
    detail: str = ""

    @property
    def found(self) -> bool:
        """Return whether there is a value."""
        return self.status is Status.VALUE

    @property
    def absent(self) -> bool:
        """Return whether the entry is missing or has expired, so that it does not exist for a reader."""
        return self.status in (Status.MISSING, Status.EXPIRED)

    def require(self) -> Any:
        """Return the value; raise ``EntryUnavailable`` where there is none."""
        if self.status is not Status.VALUE:
            reason = f": {self.detail}" if self.detail else ""
            raise EntryUnavailable(f"The entry {self.key!r} has no value to read ({self.status}{reason}).", self.status)
        return self.value


Row = tuple[str, str, int, str, bool]
"""The row of an entry as it was read: key, value, version, metadata, and whether it has expired."""


def decode_row(row: Row) -> Outcome:
    """Return the outcome of a row: ``VALUE``, ``EXPIRED``, or ``MALFORMED`` where a text in it is not JSON."""
    key, text, version, metadata, expired = row
    if expired:
        return Outcome(key, Status.EXPIRED)
    try:
        value = decode(text)
        described = {} if metadata == "{}" else decode(metadata)
    except ValueError as error:
        return Outcome(key, Status.MALFORMED, version=version, detail=str(error))
    if not isinstance(described, dict):
        return Outcome(key, Status.MALFORMED, version=version, detail="its metadata is not an object")
    return Outcome(key, Status.VALUE, value, version, described)


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """The number of reads by status; each read is counted once."""

    read: int = 0
    missing: int = 0
    expired: int = 0
    malformed: int = 0
    unreadable: int = 0
    timed_out: int = 0

    @classmethod
    def of(cls, statuses: Iterable[Status]) -> ReadCounts:
        """Return the counts of ``statuses``."""
        counted = Counter(statuses)
        return cls(
            read=counted[Status.VALUE],
            missing=counted[Status.MISSING],
            expired=counted[Status.EXPIRED],
            malformed=counted[Status.MALFORMED],
            unreadable=counted[Status.UNREADABLE],
            timed_out=counted[Status.TIMED_OUT],
        )

    @property
    def skipped(self) -> int:
        """Return how many reads gave no value."""
        return self.missing + self.expired + self.malformed + self.unreadable + self.timed_out

    @property
    def failed(self) -> int:
        """Return how many reads gave no value although the entry may exist."""
        return self.malformed + self.unreadable + self.timed_out
