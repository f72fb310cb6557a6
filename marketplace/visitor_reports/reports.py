"""Keep what visitors report, and what operators decide: each is one transaction with a line in the skill's history."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from django.db import transaction

from marketplace.errors import MarketplaceError, SkillNotFound
from marketplace.flags import FlagKind, flag
from marketplace.models import SkillEntry, VisitorReport
from marketplace.skills.moderation import ReasonMissing, quarantine_skill
from marketplace.skills.store import locked_skill, record_event
from marketplace.skills.visibility import is_visible
from vskill.environments import WorkerEnv
from vskill.hidden_characters import reveal_hidden
from vskill.kv.clock import database_now
from vskill.kv.codec import storable

LEAST_EVIDENCE: Final = 20
MOST_EVIDENCE: Final = 4_000
MOST_CONTACT: Final = 200
# Open reports of one skill; more tell an operator nothing new, and would fill the table.
MOST_OPEN: Final = 50
_VISITOR: Final = "a visitor"


class ReportReason(StrEnum):
    """Why a visitor reports a skill."""

    MALICIOUS = "malicious"
    DECEPTIVE = "deceptive"
    VULNERABLE = "vulnerable"
    INFRINGING = "infringing"
    BROKEN = "broken"
    OTHER = "other"


REASONS: Final[dict[str, str]] = {
    ReportReason.MALICIOUS: "It does harm, or tells an agent to",
    ReportReason.DECEPTIVE: "It is not what it says it is",
    ReportReason.VULNERABLE: "It has a security flaw",
    ReportReason.INFRINGING: "It has what its author may not publish",
    ReportReason.BROKEN: "It does not work",
    ReportReason.OTHER: "Something else",
}


class ReportState(StrEnum):
    """Where a report stands."""

    OPEN = "open"
    DISMISSED = "dismissed"
    FLAGGED = "flagged"
    QUARANTINED = "quarantined"


class TooManyReports(MarketplaceError):
    """A skill has as many open reports as are kept; nothing was stored."""

    code = "too_many_reports"


class ReportDecided(MarketplaceError):
    """A report was decided before; nothing was changed."""

    code = "report_decided"


def report(env: WorkerEnv, slug: str, version: str, *, reason: ReportReason, evidence: str, contact: str) -> str:
    """Store a visitor's report about a visible skill, and return its reference.

    ``version`` is the one that was looked at, or empty. ``evidence`` and ``contact`` are cut to their bounds, with
    hidden characters spelled out, and ``reason`` is one of ``REASONS``. Raises ``SkillNotFound`` and
    ``TooManyReports``.
    """
    with transaction.atomic(using=env.database):
        row = locked_skill(env, slug)
        if not is_visible(row):
            raise SkillNotFound(f"There is no skill {slug!r} here. Nothing was stored.")
        if open_reports(env, row) >= MOST_OPEN:
            raise TooManyReports("Many reports of this skill wait for an operator already. Nothing was stored.")
        reference = f"rep_{secrets.token_hex(16)}"
        VisitorReport.objects.using(env.database).create(
            namespace=env.name,
            reference=reference,
            skill_id=row.pk,
            version=storable(version)[:64],
            reason=reason,
            evidence=reveal_hidden(storable(evidence))[:MOST_EVIDENCE],
            contact=reveal_hidden(storable(contact))[:MOST_CONTACT],
        )
        record_event(env, row.key, "reported", actor=_VISITOR, reason=REASONS[reason], row=row, version=version[:64])
    return reference


def open_reports(env: WorkerEnv, skill: SkillEntry) -> int:
    """Return how many reports of a skill wait for a decision."""
    return VisitorReport.objects.using(env.database).filter(skill_id=skill.pk, state=ReportState.OPEN).count()


def find_report(env: WorkerEnv, reference: str) -> VisitorReport | None:
    """Return the report with a reference, with its skill, or ``None``."""
    rows = VisitorReport.objects.using(env.database).filter(namespace=env.name, reference=storable(reference)[:64])
    return rows.select_related("skill").first()


def dismiss(env: WorkerEnv, found: VisitorReport, *, actor: str, reason: str) -> None:
    """Close the report ``found`` without any consequence.

    ``actor`` and ``reason`` go into the history. Raises ``ReportDecided`` and ``ReasonMissing``.
    """
    _decide(env, found, ReportState.DISMISSED, actor, reason, lambda: None)


def flag_reported(env: WorkerEnv, found: VisitorReport, *, actor: str, reason: str) -> None:
    """Flag the version of the report ``found``, or the latest, with the operator's ``reason``.

    ``actor`` and ``reason`` go into the history. Raises as ``dismiss`` and ``flag`` do.
    """

    def act() -> None:
        flag(env, found.skill.slug, FlagKind.REPORT, reason, version=found.version, actor=actor)

    _decide(env, found, ReportState.FLAGGED, actor, reason, act)


def quarantine_reported(env: WorkerEnv, found: VisitorReport, *, actor: str, reason: str) -> None:
    """Quarantine the skill of the report ``found``.

    ``actor`` and ``reason`` go into the history. Raises as ``dismiss`` and ``quarantine_skill`` do.
    """

    def act() -> None:
        quarantine_skill(env, found.skill.slug, actor=actor, reason=reason)

    _decide(env, found, ReportState.QUARANTINED, actor, reason, act)


def _decide(
    env: WorkerEnv, found: VisitorReport, state: ReportState, actor: str, reason: str, act: Callable[[], None]
) -> None:
    if not reason.strip():
        raise ReasonMissing("Say why: the reason is kept in the history. Nothing was changed.")
    with transaction.atomic(using=env.database):
        row = locked_skill(env, found.skill.slug)
        open_ones = VisitorReport.objects.using(env.database).filter(pk=found.pk, state=ReportState.OPEN)
        decision = {"state": state, "decided_by": actor[:150], "decision_reason": storable(reason)}
        if not open_ones.update(**decision, decided_at=database_now(env.database)):
            raise ReportDecided("This report was decided before. Nothing was changed.")
        act()
        record_event(env, row.key, f"report {state}", actor=actor, reason=reason, row=row, version=found.version)
