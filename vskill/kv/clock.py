"""The database's clock: the one that several machines share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import connections

from vskill.kv.errors import InvalidValue

# Beyond it, a date that no database can hold comes near.
LONGEST_TTL: Final = timedelta(days=366 * 100)


def database_now(alias: str) -> datetime:
    """Return the time by the clock of the database ``alias``, in UTC, to the microsecond (SQLite: millisecond)."""
    connection = connections[alias]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # clock_timestamp moves on inside a transaction; now() stands still at its start.
            cursor.execute("SELECT clock_timestamp()")
            now: datetime = cursor.fetchone()[0]
            return now.astimezone(UTC)
        cursor.execute("SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')")
        return datetime.fromisoformat(cursor.fetchone()[0]).replace(tzinfo=UTC)


def isoformat(moment: datetime) -> str:
    """Return ``moment`` as the text that values hold: UTC, milliseconds, ``Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_isoformat(text: object) -> datetime | None:
    """Return the moment that an ISO 8601 text names (UTC where it has no zone), or ``None`` for anything else."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        # OverflowError: the first and the last day that there are, seen from another zone.
        return None


def check_expiry(expires_at: datetime | None, ttl: timedelta | None) -> None:
    """Raise ``InvalidValue`` for a time of expiry that is given twice, is too far ahead, or has no zone."""
    if ttl is not None and expires_at is not None:
        raise InvalidValue("Give expires_at or ttl, not both.")
    if ttl is not None and abs(ttl) > LONGEST_TTL:
        raise InvalidValue(f"A ttl is at most {LONGEST_TTL.days} days; leave it out for an entry that stays.")
    if expires_at is not None and expires_at.tzinfo is None:
        raise InvalidValue(f"A time of expiry has a zone; {expires_at} has none.")
