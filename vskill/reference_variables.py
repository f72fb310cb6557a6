"""The variables about references: how much of what skills refer to is fetched again, and how fast."""

from __future__ import annotations

from typing import Final

from vskill.variable_kinds import duration, integer
from vskill.variables import Variable, grouped

REFERENCE_VARIABLES: Final[list[Variable]] = grouped(
    "What skills refer to",
    Variable(
        "VSKILL_WATCH_INTERVAL",
        duration(above=0),
        86_400.0,
        "time after which an address that a published skill refers to is fetched again",
    ),
    Variable(
        "VSKILL_WATCH_PAUSE",
        duration(minimum=0),
        2.0,
        "time between two of these requests to one host, whichever machine sends them",
    ),
    Variable("VSKILL_WATCH_LIMIT", integer(minimum=1), 200, "addresses that one run of `watch_references` fetches"),
    Variable(
        "VSKILL_WATCH_SECONDS",
        duration(above=0),
        40.0,
        "time after which a run of `watch_references` begins no further fetch; the rest stays due",
    ),
)
