"""The place of a submission in the review queue, as a number: the higher, the sooner a person should look at it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from submissions.states import State

APPEALED: Final = 10_000
STRENGTH: Final = "reviewStrength"
_STRONGEST: Final = 9_999
# Of what an earlier release held, which knew nothing but the verdict.
_BY_VERDICT: Final = {"held_high": 350, "held": 300}


def strength(severity_rank: int, engines: int) -> int:
    """Return how strong the signs against a package are: the severity first, then how many engines agree."""
    return 100 * severity_rank + 10 * min(engines, 9)


def has_open_appeal(value: Mapping[str, Any]) -> bool:
    """Return whether the author of a submission, given as its value, has asked for another look and got no answer."""
    appeal = value.get("appeal")
    return isinstance(appeal, dict) and not appeal.get("answer")


def review_rank(value: Mapping[str, Any]) -> int | None:
    """Return the rank of a submission's value in the review queue, ``None`` where no person has to decide.

    What was refused comes back while an appeal is open, and appeals come first.
    """
    appealed = has_open_appeal(value)
    if value.get("state") != State.ON_HOLD and not (appealed and value.get("state") == State.REJECTED):
        return None
    kept, verdict = value.get(STRENGTH), value.get("verdict")
    if isinstance(kept, int) and not isinstance(kept, bool) and 0 <= kept <= _STRONGEST:
        rank = kept
    else:
        rank = _BY_VERDICT.get(verdict, 0) if isinstance(verdict, str) else 0
    return rank + (APPEALED if appealed else 0)


def strength_words(rank: int) -> str:
    """Return a rank of the review queue in words."""
    severities = ("no sign", "low", "medium", "high", "critical")
    appealed, strength = divmod(rank, APPEALED)
    severity, engines = severities[min(strength // 100, 4)], strength % 100 // 10
    words = f"{severity}, {engines} engine{'s' if engines != 1 else ''}" if engines else severity
    return f"appeal: {words}" if appealed else words
