"""What a scan as a whole comes to: the gravest verdict, and the exit code that says it to a program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from submissions.verification.verdict import Verdict

# From the gravest down. A skill that was not scanned completely is graver than one whose format needs a change, because
# nothing can be said about it.
_ORDER: Final = (
    Verdict.REFUSED,
    Verdict.HELD_HIGH,
    Verdict.HELD,
    Verdict.INCONCLUSIVE,
    Verdict.NO_ENGINE,
    Verdict.UNSCANNED,
    Verdict.FORMAT,
    Verdict.NOTES,
    Verdict.CLEAR,
)
# 1 is a scan that could not be done, 2 a wrong argument.
EXIT_CODES: Final = {
    Verdict.CLEAR: 0,
    Verdict.NOTES: 0,
    Verdict.FORMAT: 3,
    Verdict.UNSCANNED: 4,
    Verdict.NO_ENGINE: 4,
    Verdict.INCONCLUSIVE: 4,
    Verdict.HELD: 5,
    Verdict.HELD_HIGH: 6,
    Verdict.REFUSED: 7,
}


def gravest(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the gravest of some verdicts; raises ValueError where there is none."""
    return min(verdicts, key=_ORDER.index)
