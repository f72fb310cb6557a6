"""Counts in the memory of a process, settled with those of other processes now and then, as a storage of ``limits``.

A request costs no query. A process tells the database of a client only once that client has used up a part of its
limit there, so clients that stay far below their limits, and addresses that are seen once, cost no write at all. In
return a client may exceed its limit by that part, once for each process that it reaches.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Final

from django.db import Error
from limits.storage import Storage

from vskill.kv.threads import writers
from vskill.rate_limits.stored_counts import StoredCounts

logger = logging.getLogger(__name__)

# Clients that a process remembers, about 300 bytes each. The ones not seen for longest are forgotten first.
MOST_CLIENTS: Final = 20_000
# Seconds without a settlement after one that failed.
_PAUSE: Final = 10.0


@dataclass(slots=True)
class _Count:
    """What a process knows of a key: ``shared`` as the database last said it, ``own`` since then."""

    ends_at: float
    seconds: float
    shared: int = 0
    own: int = 0


class ProcessCounts(Storage):
    """Count in memory, and settle with ``stored`` each time that a key has ``every`` more; no method waits for it.

    ``most`` is how many keys are remembered. While the database is away, each process counts alone.
    """

    STORAGE_SCHEME = None

    def __init__(self, stored: StoredCounts, every: int, *, most: int = MOST_CLIENTS) -> None:
        """Start without counts."""
        super().__init__()
        self._stored = stored
        self._every = every
        self._most = most
        self._lock = Lock()
        self._counts: OrderedDict[str, _Count] = OrderedDict()
        self._due: set[str] = set()
        self._settling = False
        self._not_before = 0.0

    def __len__(self) -> int:
        """Return how many keys are remembered."""
        return len(self._counts)

    @property
    def base_exceptions(self) -> tuple[type[Exception], ...]:
        """Return what the library may wrap: nothing here fails."""
        return ()

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Add ``amount``, and return the count as far as this process knows it; a window lasts ``expiry`` seconds."""
        now = time.time()
        with self._lock:
            count = self._counts.get(key)
            if count is None or count.ends_at <= now:
                count = self._counts[key] = _Count(now + expiry, expiry)
                if len(self._counts) > self._most:
                    self._counts.popitem(last=False)
            self._counts.move_to_end(key)
            count.own += amount
            if count.own >= self._every:
                self._due.add(key)
            start = bool(self._due) and not self._settling and time.monotonic() >= self._not_before
            self._settling |= start
            total = count.shared + count.own
        if start:
            self._start()
        return total

    def get(self, key: str) -> int:
        """Return the count as far as this process knows it."""
        with self._lock:
            count = self._counts.get(key)
            return count.shared + count.own if count is not None and count.ends_at > time.time() else 0

    def get_expiry(self, key: str) -> float:
        """Return when the window ends, in seconds since 1970: now where there is none."""
        with self._lock:
            count = self._counts.get(key)
            return count.ends_at if count is not None else time.time()

    def check(self) -> bool:
        """Return whether counts are shared at present."""
        return self._stored.check()

    def reset(self) -> int | None:
        """Forget all counts of this process, and return how many there were."""
        with self._lock:
            forgotten = len(self._counts)
            self._counts.clear()
            self._due.clear()
        return forgotten

    def clear(self, key: str) -> None:
        """Forget one count of this process."""
        with self._lock:
            self._counts.pop(key, None)
            self._due.discard(key)

    def _start(self) -> None:
        try:
            # Not on the thread of the request, which would wait for the write lock of SQLite.
            writers.submit_shared(self._settle)
        except RuntimeError as error:
            # No thread could be started.
            self._pause(error)

    def _settle(self) -> None:
        """Write what is due, adopt what the database says of it, and go on until nothing is due."""
        while amounts := self._take_due():
            try:
                windows = self._stored.add(amounts)
            except Error as error:
                self._pause(error)
                return
            with self._lock:
                for key, window in windows.items():
                    if (count := self._counts.get(key)) is not None:
                        count.own = max(0, count.own - amounts[key][0])
                        count.shared, count.ends_at = window.count, window.ends_at

    def _take_due(self) -> dict[str, tuple[int, float]]:
        now = time.time()
        with self._lock:
            due = {key: count for key in self._due if (count := self._counts.get(key)) is not None}
            self._due.clear()
            amounts = {
                key: (count.own, count.ends_at - now) for key, count in due.items() if count.own and count.ends_at > now
            }
            self._settling = bool(amounts)
            return amounts

    def _pause(self, error: Exception) -> None:
        with self._lock:
            self._settling = False
            self._not_before = time.monotonic() + _PAUSE
        logger.warning("counts of requests are not shared between processes for %g s: %s", _PAUSE, error)
