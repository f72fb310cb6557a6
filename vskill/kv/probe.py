"""What the KV layer counts about itself, so that a claim of concurrency can be checked where it happens.

Counters belong to the layer and not to its callers: ``reads_in_flight`` counts keys that were asked for and have not
settled, ``selects_in_flight`` counts statements that a database is working on at this moment.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class ReadProbe:
    """Counters of reads and selects: now, highest seen, and in all."""

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
        """Start the highest and total counters anew; what is in flight stays counted."""
        with self._lock:
            self.reads = self.selects = 0
            self.max_reads_in_flight = self.reads_in_flight
            self.max_selects_in_flight = self.selects_in_flight


probe = ReadProbe()
