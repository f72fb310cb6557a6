"""Times of the KV layer: the database's clock, which all machines share, and moments as texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import connections

from vskill.kv.errors import InvalidValue

# A longer one could lead to a date that no database can store.
LONGEST_TTL: Final = timedelta(days=366 * 100)


def database_now(alias: str) -> datetime:
    """Return the time by the clock of the database ``alias``, in UTC, to the microsecond (SQLite: millisecond)."""
    connection = connections[alias]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Inside a transaction, now() would stay at the time when it began.
            cursor.execute("SELECT clock_timestamp()")
            now: datetime = cursor.fetchone()[0]
            return now.astimezone(UTC)
        cursor.execute("SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')")
        return datetime.fromisoformat(cursor.fetchone()[0]).replace(tzinfo=UTC)


def isoformat(moment: datetime) -> str:
    """Return an aware ``moment`` as values store it: ISO 8601 in UTC with milliseconds and ``Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_isoformat(text: object) -> datetime | None:
    """Return the moment of an ISO 8601 text, UTC where it has no zone, or ``None`` for anything else."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        # OverflowError: a time on the first or last representable day that falls outside the range in UTC.
        return None


def check_expiry(expires_at: datetime | None, ttl: timedelta | None) -> None:
    """Raise ``InvalidValue`` where both are given, ``ttl`` is too long, or ``expires_at`` has no time zone."""
    if ttl is not None and expires_at is not None:
        raise InvalidValue("Give expires_at or ttl, not both.")
    if ttl is not None and abs(ttl) > LONGEST_TTL:
        raise InvalidValue(f"A ttl is at most {LONGEST_TTL.days} days; leave it out for an entry that stays.")
    if expires_at is not None and expires_at.tzinfo is None:
        raise InvalidValue(f"A time of expiry has a zone; {expires_at} has none.")
