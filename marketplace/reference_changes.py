"""Write what was found at an address that published versions refer to, and flag those for which it has changed."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models.functions import Now

from marketplace.flags import FlagKind, flag
from marketplace.models import ReferenceEntry, SkillVersion
from marketplace.models.references import ADDRESS_PREFIX
from marketplace.skills.references import change_sentence, changed_references, reference_namespace, use_prefix
from marketplace.skills.visibility import versions_in_use
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now, isoformat, parse_isoformat

logger = logging.getLogger(__name__)

ACTOR: Final = "watch_references"
"""The command that fetches, and who sets the flags."""
_KEYS_AT_ONCE: Final = 500


@dataclass(frozen=True)
class Found:
    """What lies at an address: its SHA-256 and size, and how its host labels it (``etag``, ``modified``)."""

    sha256: str
    size: int
    etag: str = ""
    modified: str = ""


@dataclass(frozen=True)
class Address:
    """An address that is due: its key, the version of its entry, and what was found there last, None if nothing."""

    key: str
    url: str
    version: int
    value: dict[str, Any]
    known: Found | None

    @property
    def digest(self) -> str:
        """Return what its keys are made of."""
        return self.key.removeprefix(ADDRESS_PREFIX)


def due_addresses(env: WorkerEnv, limit: int) -> list[tuple[str, str, str]]:
    """Return key, host and URL of the addresses that are due by the database's clock, the longest overdue first."""
    rows = ReferenceEntry.objects.using(env.database).filter(namespace=env.name, due_at__lte=Now())
    return list(rows.order_by("due_at", "key").values_list("key", "host", "url")[:limit])


def read_due(env: WorkerEnv, key: str) -> Address | None:
    """Return an address that is still due, or ``None`` where another process has just fetched it."""
    outcome = reference_namespace(env).get_sync(key)
    value = outcome.value if outcome.found and isinstance(outcome.value, dict) else {}
    due_at = parse_isoformat(value.get("dueAt"))
    if not value.get("url") or due_at is None or due_at > database_now(env.database):
        return None
    known = None
    if value.get("sha256"):
        known = Found(
            str(value["sha256"]), int(value.get("size", 0)), str(value.get("etag", "")), str(value.get("modified", ""))
        )
    return Address(key, str(value["url"]), outcome.version, value, known)


def repositories_using(env: WorkerEnv, address: Address) -> set[str]:
    """Return the repositories of the skills that can be fetched here and use an address."""
    found: set[str] = set()
    numbers = [
        int(use.key.rpartition(":")[2]) for use in reference_namespace(env).get_all_sync(use_prefix(address.digest))
    ]
    for start in range(0, len(numbers), _KEYS_AT_ONCE):
        rows = SkillVersion.objects.using(env.database).filter(
            namespace=env.name, pk__in=numbers[start : start + _KEYS_AT_ONCE]
        )
        found.update(versions_in_use(rows).values_list("skill__repo_url", flat=True))
    return found


def put_off(env: WorkerEnv, address: Address, interval: timedelta) -> None:
    """Fetch an address again after ``interval`` at the earliest, because nothing that can be fetched uses it now."""
    due = isoformat(database_now(env.database) + interval)
    reference_namespace(env).put_sync(address.key, {**address.value, "dueAt": due}, expect_version=address.version)


def note_failed(env: WorkerEnv, address: Address, reason: str, interval: timedelta) -> None:
    """Count that an address could not be fetched for ``reason``; nothing has changed by that."""
    now = database_now(env.database)
    value = {
        **address.value,
        "failures": int(address.value.get("failures", 0)) + 1,
        "error": reason,
        "failedAt": isoformat(now),
        "dueAt": isoformat(now + interval),
    }
    reference_namespace(env).put_sync(address.key, value, expect_version=address.version)


def note_found(env: WorkerEnv, address: Address, found: Found, interval: timedelta) -> int:
    """Write what was found at an address, flag the versions for which it has changed, and return how many those are.

    Each use is written by itself and the address last, so that a run that is killed in between is repeated and changes
    nothing twice. ``interval`` is the time until the next fetch. Raises ``VersionConflict`` where another process wrote
    the same entry first.
    """
    now = database_now(env.database)
    changed = sum(
        _note_use(env, use.key, use.version, use.value, found, now)
        for use in reference_namespace(env).get_all_sync(use_prefix(address.digest))
        if use.found and isinstance(use.value, dict)
    )
    is_other = address.known is not None and address.known.sha256 != found.sha256
    value = {
        **address.value,
        "sha256": found.sha256,
        "size": found.size,
        "etag": found.etag,
        "modified": found.modified,
        "checkedAt": isoformat(now),
        "dueAt": isoformat(now + interval),
        "failures": 0,
        "error": "",
        **({"changedAt": isoformat(now)} if is_other else {}),
    }
    reference_namespace(env).put_sync(address.key, value, expect_version=address.version)
    return changed


def _note_use(env: WorkerEnv, key: str, version: int, value: dict[str, Any], found: Found, now: datetime) -> bool:
    """Write what was found into one use, and return whether it has changed for that version; see ``note_found``."""
    namespace = reference_namespace(env)
    baseline, last = value.get("baseline"), value.get("last")
    if not baseline:
        kept = {**value, "baseline": found.sha256, "last": found.sha256, "baselineAt": isoformat(now)}
        namespace.put_sync(key, kept, expect_version=version)
        return False
    is_new = found.sha256 != last and found.sha256 != baseline
    if is_new:
        value = {**value, "last": found.sha256, "changedAt": isoformat(now)}
        version = namespace.put_sync(key, value, expect_version=version)
    if value.get("changedAt") and value.get("told") != value["last"]:
        # Also where an earlier run was killed before it told. An operator who takes the flag off is told once only.
        _flag(env, int(value["versionNumber"]), str(value["url"]))
        namespace.put_sync(key, {**value, "told": value["last"]}, expect_version=version)
    return is_new


def _flag(env: WorkerEnv, number: int, url: str) -> None:
    row = SkillVersion.objects.using(env.database).filter(pk=number).select_related("skill").first()
    if row is None or not row.skill.slug:
        return
    logger.warning("%s %s refers to %s, which has changed since the check", row.skill.slug, row.version, url)
    uses = changed_references(env, [number]).get(number, [])
    details = {"addresses": [use.url for use in uses][:20]}
    flag(
        env, row.skill.slug, FlagKind.OUTSIDE, change_sentence(uses), version=row.version, details=details, actor=ACTOR
    )
