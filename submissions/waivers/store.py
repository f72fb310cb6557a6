"""Grant waivers, end them, and let them lapse; what was published by one is scanned again afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction

from marketplace.models import LaterScan, SkillEntry, SkillVersion
from submissions import messages
from submissions.models import Waiver
from submissions.verification.findings import Finding
from submissions.verification.fingerprints import WaiverScope
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.hidden_characters import visible
from vskill.kv.clock import database_now

LONGEST: Final = timedelta(days=365)
USUAL: Final = timedelta(days=90)
LAPSED: Final = "expiry"
# Of what has lapsed, in one transaction; the next run of cron goes on.
_MOST_LAPSED: Final = 200


class InvalidWaiver(VskillError):
    """A waiver that cannot be granted or ended; nothing was changed, and the message says what to do."""

    code = "invalid_waiver"


@dataclass(frozen=True)
class Waivable:
    """A finding that can be waived in one skill: its fingerprint with this ``scope``."""

    finding: Finding
    scope: WaiverScope
    fingerprint: str


def check_end(now: datetime, until: datetime) -> None:
    """Raise ``InvalidWaiver`` unless ``until`` lies after ``now`` and within a year of it."""
    if not now < until <= now + LONGEST + timedelta(days=1):
        raise InvalidWaiver(
            f"A waiver ends on a day from tomorrow to {now + LONGEST:%Y-%m-%d}. Nothing was changed: choose such a day."
        )


def grant(
    env: WorkerEnv,
    identity: str,
    waivable: Sequence[Waivable],
    *,
    skill_name: str,
    submission_id: str,
    until: datetime,
    owner: str,
    actor: str,
    reason: str,
) -> list[Waiver]:
    """Waive some findings in the skill ``identity`` until a time, and return the waivers.

    One of the same finding that is still open is replaced. ``skill_name`` and ``submission_id`` say what it was granted
    for, ``owner`` answers for it, and ``actor`` and ``reason`` are kept. Raises ``InvalidWaiver``.
    """
    if not identity or not waivable:
        raise InvalidWaiver("No finding was chosen. Nothing was changed: tick those that you accept.")
    with transaction.atomic(using=env.database):
        now = database_now(env.database)
        check_end(now, until)
        rows = Waiver.objects.using(env.database)
        unique = {one.fingerprint: one for one in waivable}
        same = rows.filter(namespace=env.name, identity=identity, fingerprint__in=sorted(unique), ended_at=None)
        same.update(ended_at=now, ended_by=actor, ended_reason="replaced by a newer waiver")
        return [
            rows.create(
                namespace=env.name,
                identity=identity,
                skill_name=skill_name[:200],
                fingerprint=one.fingerprint,
                scope=one.scope,
                engine=one.finding.engine[:64],
                rule_id=one.finding.rule_id[:200],
                title=one.finding.title,
                file=one.finding.file,
                line=one.finding.line,
                submission_id=submission_id,
                reason=reason,
                owner=owner[:150],
                created_by=actor,
                expires_at=until,
            )
            for _fingerprint, one in sorted(unique.items())
        ]


def active_words(env: WorkerEnv, identity: str) -> dict[str, str]:
    """Return the words of each waiver of a skill that counts now, by fingerprint, as visitors read them."""
    if not identity:
        return {}
    rows = Waiver.objects.using(env.database).filter(namespace=env.name, identity=identity, ended_at=None)
    rows = rows.filter(expires_at__gt=database_now(env.database))
    return {one.fingerprint: _words(one) for one in rows.order_by("pk")}


def _words(waiver: Waiver) -> str:
    return f"Accepted by a reviewer until {waiver.expires_at:%Y-%m-%d}: {visible(waiver.reason)}"


def waivers_of(env: WorkerEnv, identity: str, most: int) -> list[Waiver]:
    """Return the waivers of a skill that are not ended, the newest first, at most ``most``."""
    rows = Waiver.objects.using(env.database).filter(namespace=env.name, identity=identity, ended_at=None)
    return list(rows.exclude(identity="").order_by("-pk")[:most])


def revoke(env: WorkerEnv, waiver_id: int, *, actor: str, reason: str) -> Waiver:
    """End a waiver before its time and return it; what was published by it is scanned again.

    ``actor`` and ``reason`` are kept with it. Raises ``InvalidWaiver`` where it has ended already.
    """
    with transaction.atomic(using=env.database):
        waiver = Waiver.objects.using(env.database).filter(namespace=env.name, pk=waiver_id, ended_at=None).first()
        if waiver is None:
            raise InvalidWaiver("It has ended already. Nothing was changed.")
        _end(env, [waiver], actor, reason)
        return waiver


def end_lapsed(env: WorkerEnv) -> list[Waiver]:
    """End the waivers whose time is over and return them; what was published by them is scanned again.

    At most 200 at once. A run that is killed has ended all of these or none.
    """
    with transaction.atomic(using=env.database):
        rows = Waiver.objects.using(env.database).filter(namespace=env.name, ended_at=None)
        over = list(rows.filter(expires_at__lte=database_now(env.database)).order_by("expires_at", "pk")[:_MOST_LAPSED])
        if over:
            _end(env, over, LAPSED, "Its time was over.")
        return over


def lapsed_count(env: WorkerEnv) -> int:
    """Return how many waivers ``end_lapsed`` would end."""
    rows = Waiver.objects.using(env.database).filter(namespace=env.name, ended_at=None)
    return rows.filter(expires_at__lte=database_now(env.database)).count()


def _end(env: WorkerEnv, waivers: Sequence[Waiver], actor: str, reason: str) -> None:
    now = database_now(env.database)
    rows = Waiver.objects.using(env.database).filter(pk__in=[one.pk for one in waivers], ended_at=None)
    rows.update(ended_at=now, ended_by=actor, ended_reason=reason)
    for version in _published_by(env, {one.identity for one in waivers}):
        # Without its key it is due, also for the walks, should this message be lost.
        SkillVersion.objects.using(env.database).filter(pk=version).update(scan_key="")
        messages.send_rescan(env, version, priority=1)


def _published_by(env: WorkerEnv, identities: Iterable[str]) -> list[int]:
    """Return the numbers of the versions of some skills whose latest findings have one that is waived."""
    skills = SkillEntry.objects.using(env.database).filter(namespace=env.name, identity__in=sorted(identities))
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name, skill__in=skills)
    later = dict(
        LaterScan.objects.using(env.database).filter(version__in=versions).values_list("version_id", "findings")
    )
    rows = versions.order_by("-pk").values_list("pk", "findings")
    return [pk for pk, findings in rows if _any_waived(findings) or _any_waived(later.get(pk, []))]


def _any_waived(findings: Any) -> bool:
    return any(isinstance(one, dict) and one.get("waived") for one in findings or ())
