"""What a read gives for each key: a value, or the reason why there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from vskill.kv.errors import EntryUnavailable


class Status(StrEnum):
    """How the read of one key ended."""

    VALUE = "value"
    MISSING = "missing"
    EXPIRED = "expired"
    MALFORMED = "malformed"
    UNREADABLE = "unreadable"
    TIMED_OUT = "timed_out"


# Not frozen: that costs more than the rest of making one, a hundred thousand times a scan.
@dataclass(slots=True)
class Outcome:
    """The end of one read.

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
        """Return whether the key holds nothing for a reader: it is missing or has expired."""
        return self.status in (Status.MISSING, Status.EXPIRED)

    def require(self) -> Any:
        """Return the value; raise ``EntryUnavailable`` where there is none."""
        if self.status is not Status.VALUE:
            reason = f": {self.detail}" if self.detail else ""
            raise EntryUnavailable(f"The entry {self.key!r} has no value to read ({self.status}{reason}).", self.status)
        return self.value


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """How the reads of a run ended, each counted once."""

    read: int = 0
    missing: int = 0
    expired: int = 0
    malformed: int = 0
    unreadable: int = 0
    timed_out: int = 0

    @classmethod
    def of(cls, statuses: Iterable[Status]) -> ReadCounts:
        """Count ``statuses``."""
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
        """Return how many keys gave no value."""
        return self.missing + self.expired + self.malformed + self.unreadable + self.timed_out

    @property
    def failed(self) -> int:
        """Return how many keys could not be read although they may well be there."""
        return self.malformed + self.unreadable + self.timed_out
