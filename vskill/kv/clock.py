"""The database's clock: the one that several machines share."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import connections


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
