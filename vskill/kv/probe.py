"""Counters of the KV layer, by which tests check how much of it really runs concurrently.

``reads_in_flight`` counts keys that were requested and have not settled, over all callers. ``selects_in_flight`` counts
statements that a database is working on at this moment.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class ReadProbe:
    """Counters of reads and selects: the current number, the highest so far, and the total."""

    reads_in_flight: int = 0
    max_reads_in_flight: int = 0
    reads: int = 0
    selects_in_flight: int = 0
    max_selects_in_flight: int = 0
    selects: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def begin_reads(self, keys: int) -> None:
        """Count ``keys`` reads as in flight from now on."""
        with self._lock:
            self.reads += keys
            self.reads_in_flight += keys
            self.max_reads_in_flight = max(self.max_reads_in_flight, self.reads_in_flight)

    def end_reads(self, keys: int) -> None:
        """Count ``keys`` reads as settled."""
        with self._lock:
            self.reads_in_flight -= keys

    @contextmanager
    def selecting(self) -> Iterator[None]:
        """Count one select as in flight while the body runs."""
        with self._lock:
            self.selects += 1
            self.selects_in_flight += 1
            self.max_selects_in_flight = max(self.max_selects_in_flight, self.selects_in_flight)
        try:
            yield
        finally:
            with self._lock:
                self.selects_in_flight -= 1

    def reset(self) -> None:
        """Reset the highest and the total counters; reads and selects in flight stay counted."""
        with self._lock:
            self.reads = self.selects = 0
            self.max_reads_in_flight = self.reads_in_flight
            self.max_selects_in_flight = self.selects_in_flight


probe = ReadProbe()
