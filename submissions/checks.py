"""System checks that refuse contradictory settings of the queue and of recovery at start-up."""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.core.exceptions import ImproperlyConfigured

from marketplace.flags import FlagKind
from submissions.verification.engines import ENGINES
from vskill.environments import all_environments

# A heartbeat may fail twice before the lease ends and the work has to stop.
RENEWALS_IN_A_LEASE: Final = 3
# The first version with RETURNING, which claims messages.
SQLITE_NEEDED: Final = (3, 35, 0)

_ABOVE_ZERO: Final = {
    "QUEUE_MAX_BATCH_SIZE": "VSKILL_QUEUE_MAX_BATCH_SIZE",
    "QUEUE_MAX_CONCURRENCY": "VSKILL_QUEUE_MAX_CONCURRENCY",
    "QUEUE_POLL_INTERVAL": "VSKILL_QUEUE_POLL_INTERVAL",
    "QUEUE_LEASE": "VSKILL_QUEUE_LEASE",
    "QUEUE_HEARTBEAT": "VSKILL_QUEUE_HEARTBEAT",
    "QUEUE_MESSAGE_LIMIT": "VSKILL_QUEUE_MESSAGE_LIMIT",
    "QUEUE_MAX_ERRORS": "VSKILL_QUEUE_MAX_ERRORS",
    "QUEUE_MAX_CRASHES": "VSKILL_QUEUE_MAX_CRASHES",
    "STUCK_THRESHOLD_SECONDS": "VSKILL_STUCK_THRESHOLD",
    "RECOVERY_INTERVAL": "VSKILL_RECOVERY_INTERVAL",
    "FETCH_PROCESSES": "VSKILL_FETCH_PROCESSES",
    "SCAN_PROCESSES": "VSKILL_SCAN_PROCESSES",
}
_ZERO_OR_MORE: Final = {
    "QUEUE_MAX_BATCH_WAIT": "VSKILL_QUEUE_MAX_BATCH_WAIT",
    "QUEUE_SHUTDOWN_GRACE": "VSKILL_QUEUE_SHUTDOWN_GRACE",
    "RECOVERY_MAX_ATTEMPTS": "VSKILL_RECOVERY_MAX_ATTEMPTS",
}


@register(Tags.compatibility)
def check_queue(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Refuse impossible times and counts, and combinations of them that would lose leases or work."""
    problems: list[CheckMessage] = [
        Error(f"{variable} is a number above 0.", id="submissions.E001")
        for name, variable in _ABOVE_ZERO.items()
        if getattr(settings, name) <= 0
    ]
    problems += [
        Error(f"{variable} is 0 or more.", id="submissions.E001")
        for name, variable in _ZERO_OR_MORE.items()
        if getattr(settings, name) < 0
    ]
    if not settings.QUEUE_BACKOFF or min(settings.QUEUE_BACKOFF) < 0:
        problems.append(
            Error("VSKILL_QUEUE_BACKOFF is a list of at least one number, each 0 or more.", id="submissions.E001")
        )
    return problems or _contradictions()


def _contradictions() -> list[CheckMessage]:
    problems: list[CheckMessage] = []
    if settings.QUEUE_LEASE < RENEWALS_IN_A_LEASE * settings.QUEUE_HEARTBEAT:
        problems.append(
            Error(
                f"A lease of {settings.QUEUE_LEASE:g} s is renewed every {settings.QUEUE_HEARTBEAT:g} s: one renewal "
                "that is late would stop the work.",
                hint=f"Let VSKILL_QUEUE_LEASE be at least {RENEWALS_IN_A_LEASE} times VSKILL_QUEUE_HEARTBEAT.",
                id="submissions.E002",
            )
        )
    if settings.QUEUE_MESSAGE_LIMIT <= settings.FETCH_SECONDS:
        problems.append(
            Error(
                f"A message is ended after {settings.QUEUE_MESSAGE_LIMIT:g} s, and fetching alone may take "
                f"{settings.FETCH_SECONDS:g} s.",
                hint="Raise VSKILL_QUEUE_MESSAGE_LIMIT or lower VSKILL_FETCH_SECONDS.",
                id="submissions.E003",
            )
        )
    if settings.QUEUE_MESSAGE_LIMIT < settings.QUEUE_LEASE:
        problems.append(
            Error(
                f"A message is ended after {settings.QUEUE_MESSAGE_LIMIT:g} s, within its lease of "
                f"{settings.QUEUE_LEASE:g} s: the work of a dead worker would come back later than any work may last.",
                hint="Let VSKILL_QUEUE_MESSAGE_LIMIT be at least VSKILL_QUEUE_LEASE.",
                id="submissions.E004",
            )
        )
    if settings.QUEUE_POLL_INTERVAL > settings.QUEUE_LEASE:
        problems.append(
            Error(
                f"The queue is asked every {settings.QUEUE_POLL_INTERVAL:g} s, less often than a lease of "
                f"{settings.QUEUE_LEASE:g} s ends.",
                hint="Lower VSKILL_QUEUE_POLL_INTERVAL.",
                id="submissions.E005",
            )
        )
    if settings.SCAN_PROCESSES > settings.QUEUE_MAX_BATCH_SIZE * settings.QUEUE_MAX_CONCURRENCY:
        problems.append(
            CheckWarning(
                f"There are {settings.SCAN_PROCESSES} places for scans and never more than "
                f"{settings.QUEUE_MAX_BATCH_SIZE * settings.QUEUE_MAX_CONCURRENCY} messages in work.",
                hint="Raise VSKILL_QUEUE_MAX_CONCURRENCY or lower VSKILL_SCAN_PROCESSES.",
                id="submissions.W001",
            )
        )
    return problems


@register(Tags.compatibility)
def check_connections(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Refuse a connection pool that is too small to renew leases while other threads use it."""
    # Two more: the main thread of the command, and the thread that renews leases.
    threads = settings.KV_READ_WORKERS + settings.KV_WRITE_WORKERS + 2
    problems: list[CheckMessage] = []
    for alias, database in settings.DATABASES.items():
        options: Any = database.get("OPTIONS", {})
        pool = options.get("pool")
        size = pool.get("max_size") if isinstance(pool, dict) else None
        if size and size < threads:
            problems.append(
                Error(
                    f"Database {alias!r} has a pool of {size} connections for the {threads} threads of a consumer; "
                    "leases could not be renewed in time.",
                    hint="Raise VSKILL_DATABASE_POOL_SIZE or lower VSKILL_KV_READ_WORKERS and VSKILL_KV_WRITE_WORKERS.",
                    id="submissions.E007",
                )
            )
    return problems


@register(Tags.compatibility)
def check_engines(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Refuse policies that name a verification engine which does not exist."""
    try:
        environments = all_environments().values()
    except ImproperlyConfigured:
        # Reported by the check of the environments themselves.
        return []
    problems: list[CheckMessage] = []
    for env in environments:
        for name in (*env.policy.tier1_engines, *env.policy.tier2_engines):
            if name in ENGINES:
                continue
            nearest = difflib.get_close_matches(name, ENGINES, 1)
            known = ", ".join(sorted(ENGINES))
            problems.append(
                Error(
                    f"The policy of environment {env.name!r} names the engine {name!r}, which does not exist.",
                    hint=f"Did you mean {nearest[0]}?" if nearest else f"Known engines: {known}.",
                    id="submissions.E008",
                )
            )
    return problems


@register(Tags.compatibility)
def check_flags(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Refuse policies that quarantine for a kind of flag which does not exist."""
    try:
        environments = all_environments().values()
    except ImproperlyConfigured:
        # Reported by the check of the environments themselves.
        return []
    known = ", ".join(FlagKind)
    return [
        Error(
            f"The policy of environment {env.name!r} quarantines for the flag {name!r}, which does not exist.",
            hint=f"Known flags: {known}.",
            id="submissions.E009",
        )
        for env in environments
        for name in env.policy.quarantine_flags
        if name not in set(FlagKind)
    ]


@register(Tags.compatibility)
def check_sqlite(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Refuse a version of SQLite that is too old for the statements of the queue."""
    engines = {database["ENGINE"] for database in settings.DATABASES.values()}
    if "django.db.backends.sqlite3" not in engines or sqlite3.sqlite_version_info >= SQLITE_NEEDED:
        return []
    needed = ".".join(str(part) for part in SQLITE_NEEDED[:2])
    return [
        Error(
            f"SQLite {sqlite3.sqlite_version} is too old; the queue needs {needed}.",
            hint="Use a Python that is built with a newer SQLite, or PostgreSQL.",
            id="submissions.E006",
        )
    ]


@register(Tags.compatibility)
def check_external_scanners(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Refuse external scanners without a secret, or without the address at which they fetch and answer."""
    try:
        environments = all_environments().values()
    except ImproperlyConfigured:
        return []
    problems: list[CheckMessage] = []
    for env in environments:
        if not env.policy.external_scanners:
            continue
        if not env.secrets.get("external_scans"):
            problems.append(
                Error(
                    f"Environment {env.name!r} has external scanners and no secret 'external_scans'.",
                    hint="Set VSKILL_EXTERNAL_SCAN_SECRET, or name a variable under 'secrets' in VSKILL_ENVIRONMENTS.",
                    id="submissions.E010",
                )
            )
        if not env.public_url:
            problems.append(
                Error(
                    f"Environment {env.name!r} has external scanners and no public_url, where they would answer.",
                    hint="Set public_url of the environment.",
                    id="submissions.E011",
                )
            )
    return problems
