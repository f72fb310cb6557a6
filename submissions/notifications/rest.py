"""How long a receiver asks to be left alone: the header ``Retry-After`` of its answer."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from submissions.notifications.send import Answer

LONGEST_REST: Final = timedelta(hours=24)
# Too many requests, and away for a time; on other answers the header means something else.
_ASKING: Final = frozenset({429, 503})
_SECONDS: Final = re.compile(r"[0-9]{1,9}")


def rest_asked(answer: Answer, now: datetime) -> timedelta | None:
    """Return for how long a receiver that answered ``now`` asks to be left alone, ``LONGEST_REST`` at most.

    ``None`` where it asks for nothing that can be read, or for a time that is over.
    """
    said = answer.retry_after.strip()
    if answer.status not in _ASKING or not said:
        return None
    if _SECONDS.fullmatch(said):
        rest = timedelta(seconds=int(said))
    else:
        try:
            at = parsedate_to_datetime(said)
            # A date of mail may name no zone; one of HTTP is of UTC.
            rest = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)) - now
        except (ValueError, OverflowError, IndexError):
            return None
    return min(rest, LONGEST_REST) if rest > timedelta() else None
