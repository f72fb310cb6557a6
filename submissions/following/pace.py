"""How often followed repositories are looked at: seldom enough that all of them cost less than a request a second."""

from __future__ import annotations

import math
import random
from datetime import timedelta
from typing import Final

from django.conf import settings

# `git ls-remote` over https asks twice.
REQUESTS_OF_A_LOOK: Final = 2
# In an environment, however many repositories are due: 0.8 requests a second.
LOOKS_PER_SECOND: Final = 0.4
# Of the interval, for each repository: all of them together are due somewhat slower than they can be looked at.
_SECONDS_OF_EACH: Final = 2.75
_SPREAD: Final = 0.1
LONGEST_RUN: Final = timedelta(seconds=60)
# Where a submission is on its way that a commit waits for; that asks nobody.
RECHECK_WAITING: Final = timedelta(minutes=2)
RECHECK_FAILURE: Final = timedelta(minutes=5)
LONGEST_WAIT: Final = timedelta(days=1)
# Between two looks at one repository, however many webhooks name it.
LEAST_BETWEEN: Final = timedelta(seconds=10)
_MOST_DOUBLINGS: Final = 10


def interval(count: int) -> timedelta:
    """Return the time between two looks at a repository where ``count`` are followed: it grows with their number."""
    return timedelta(seconds=max(settings.FOLLOW_INTERVAL, count * _SECONDS_OF_EACH))


def spread(wait: timedelta) -> timedelta:
    """Return ``wait``, up to a tenth longer or shorter, so that what began together does not stay together."""
    return wait * random.uniform(1 - _SPREAD, 1 + _SPREAD)  # noqa: S311 - no secret


def after_failures(failures: int, usual: timedelta) -> timedelta:
    """Return the time until the next look after ``failures`` in a row; ``usual`` is that after a success.

    It doubles with each, up to a day, and is never shorter than the usual one.
    """
    doubled: timedelta = RECHECK_FAILURE * 2 ** min(failures - 1, _MOST_DOUBLINGS)
    return max(usual, min(LONGEST_WAIT, doubled))


def allowance(since_last_run: timedelta | None) -> int:
    """Return how many looks a run may take that begins this long after the one before; ``None``: there was none."""
    passed = LONGEST_RUN if since_last_run is None else min(LONGEST_RUN, since_last_run)
    return max(1, math.floor(passed.total_seconds() * LOOKS_PER_SECOND))
