"""Shares with their intervals, and percentiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

# Of the normal distribution, for an interval of 95 %.
_Z: Final = 1.959963984540054


@dataclass(frozen=True)
class Share:
    """``hits`` of ``of``; without any there is no rate."""

    hits: int
    of: int

    @property
    def rate(self) -> float | None:
        """Return the share as a number from 0 to 1, ``None`` where there is nothing to count."""
        return self.hits / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the Wilson score interval of 95 %, ``None`` where there is nothing to count.

        It stays between 0 and 1 and says something even where all or none are hits (Wilson 1927).
        """
        if not self.of:
            return None
        rate, squared = self.hits / self.of, _Z * _Z
        middle = (rate + squared / (2 * self.of)) / (1 + squared / self.of)
        half = _Z / (1 + squared / self.of) * math.sqrt(rate * (1 - rate) / self.of + squared / (4 * self.of**2))
        return max(0.0, middle - half), min(1.0, middle + half)

    def as_json(self) -> dict[str, Any]:
        """Return plain values for ``json.dumps``, rounded to four digits."""
        low, high = self.interval or (None, None)
        numbers = {"rate": self.rate, "low": low, "high": high}
        rounded = {name: None if number is None else round(number, 4) for name, number in numbers.items()}
        return {"hits": self.hits, "of": self.of, **rounded}

    def __str__(self) -> str:
        """Return the share for a table: ``0.41 [0.38-0.44] 482/1176``."""
        if self.rate is None or self.interval is None:
            return "-"
        low, high = self.interval
        return f"{self.rate:.3f} [{low:.3f}-{high:.3f}] {self.hits}/{self.of}"


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Return the smallest value that at least ``percent`` of 100 of the values do not exceed; ``None`` of nothing."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(percent / 100 * len(values)) - 1)]
