"""A clock that a test moves, so that no wait depends on how fast the machine is."""

from __future__ import annotations

import pytest

from vskill.rate_limits import failed_logins, stored_counts


class Clock:
    """Stands in for the module ``time`` where windows are counted."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def time(self) -> float:
        return self.now


def stop_the_clock(patch: pytest.MonkeyPatch) -> Clock:
    """Let the clock of counts in the database stand still until the test moves it."""
    clock = Clock()
    for module in (stored_counts, failed_logins):
        patch.setattr(module, "time", clock)
    return clock
