"""Keep the result of a later scan, and flag the version where its verdict got worse, in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction

from marketplace.flags import FlagKind, clear, flag
from marketplace.judgement import verdict_of
from marketplace.likeness.published import index_version
from marketplace.likeness.signature import Signature
from marketplace.models import LaterScan, SkillVersion
from marketplace.provenance.entries import note_scanned
from marketplace.skills.capability_renewal import lock_skill, renew_capabilities
from marketplace.skills.references import renew_references
from marketplace.skills.scan_history import note_scan, seen_in
from submissions.outbox import tell_scanned
from submissions.verification.engines.base import UNFINISHED, EngineResult, contract_in
from submissions.verification.verdict import Decision, Verdict
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now, isoformat

ACTOR: Final = "rescan"
# What would hold a skill, by its weight; any other verdict would publish it, or says nothing about it.
_WEIGHTS: Final = {Verdict.HELD: 1, Verdict.HELD_HIGH: 2, Verdict.REFUSED: 3}
_MOST_REASONS: Final = 3


@dataclass(frozen=True)
class Rescanned:
    """What came of a later scan: its verdict, and whether the version has a flag for it now."""

    verdict: str
    flagged: bool


def keep_key(env: WorkerEnv, version: SkillVersion, key: str) -> None:
    """Keep that nothing is to be scanned of a version under this key."""
    SkillVersion.objects.using(env.database).filter(pk=version.pk).update(scan_key=key)


def record(
    env: WorkerEnv,
    version: SkillVersion,
    key: str,
    decision: Decision,
    results: Sequence[EngineResult],
    *,
    signature: Signature | None = None,
    capabilities: Collection[str] = (),
    spared: bool = False,
) -> Rescanned:
    """Keep the ``decision`` and the ``results`` of a later scan of ``version`` under ``key``; again changes nothing.

    The version is flagged where the verdict is graver than the one that it was published with, and than the one for
    which an operator took a flag off; otherwise that flag is cleared. A scan that is not complete does neither, and one
    that is ``spared`` by trust in the owner never flags. ``signature`` is kept for a version of an earlier release.
    ``capabilities`` are those that the pre-scan found. What the skill does and refers to is renewed, unless no engine
    has said it, and what engines called it where all have ended.
    """
    with transaction.atomic(using=env.database):
        found: dict[str, Any] = {
            "namespace": env.name,
            "scan_key": key,
            "verdict": decision.verdict.value,
            "verdict_summary": decision.summary,
            "capabilities": sorted({*capabilities, *(name for one in results for name in one.capabilities)}),
            "engines": [
                {"name": one.engine, "version": one.engine_version, "status": one.status.value} for one in results
            ],
            "findings": [finding.as_json() for finding in decision.findings],
            "scanned_at": database_now(env.database),
        }
        before = LaterScan.objects.using(env.database).filter(version=version).values_list("verdict", flat=True).first()
        before = before or verdict_of(version)
        if before != found["verdict"]:
            note_scanned(env, version, found["verdict"], found["engines"], found["scanned_at"])
            tell_scanned(
                env,
                version.skill,
                version.version,
                before=before,
                after=found["verdict"],
                reason=decision.summary,
                source=f"scan:{version.pk}:{isoformat(found['scanned_at'])}",
            )
        later, _created = LaterScan.objects.using(env.database).update_or_create(version=version, defaults=found)
        note_scan(env, version.pk, seen_in(later))
        _renew(env, version, later, results, signature)
        return Rescanned(decision.verdict.value, _flag(env, version, later, decision, spared=spared))


def _renew(
    env: WorkerEnv,
    version: SkillVersion,
    later: LaterScan,
    results: Sequence[EngineResult],
    signature: Signature | None,
) -> None:
    """Write what a later scan knows better about the version itself: one update, and what hangs on it."""
    skill = lock_skill(env, version.skill_id)
    changes: dict[str, Any] = {"scan_key": later.scan_key}
    if results and not any(one.status in UNFINISHED for one in results):
        changes["capabilities"] = later.capabilities
    contract = contract_in(results)
    if contract is not None:
        changes["contract"] = dict(contract)
    missing = None if version.normal_digest else signature
    if missing is not None:
        changes["normal_digest"] = missing.normal_digest
    SkillVersion.objects.using(env.database).filter(pk=version.pk).update(**changes)
    if missing is not None:
        index_version(env, version, missing)
    if contract is not None:
        version.contract = changes["contract"]
        renew_references(env, version)
    if skill.latest_version == version.version:
        renew_capabilities(env, skill)


def _flag(env: WorkerEnv, version: SkillVersion, later: LaterScan, decision: Decision, *, spared: bool) -> bool:
    slug, number = version.skill.slug, version.version
    if decision.verdict is Verdict.INCONCLUSIVE:
        return bool(version.flag_reason)
    before = max(_weight(verdict_of(version)), _weight(later.accepted_verdict))
    if spared or _WEIGHTS.get(decision.verdict, 0) <= before:
        clear(env, slug, FlagKind.VERDICT, version=number, actor=ACTOR, reason=f"scanned again: {decision.summary}")
        return False
    engines = ", ".join(f"{one['name']} {one['version']}" for one in later.engines)
    reasons = " ".join(decision.reasons[:_MOST_REASONS])
    details = {
        "verdict": decision.verdict.value,
        "publishedWith": verdict_of(version),
        "reasons": list(decision.reasons),
        "engines": later.engines,
        "scanKey": later.scan_key,
    }
    said = f"Scanned again by {engines}, it would not be published without a person: {reasons}"
    flag(env, slug, FlagKind.VERDICT, said, version=number, details=details, actor=ACTOR)
    return True


def _weight(verdict: str) -> int:
    return _WEIGHTS.get(Verdict(verdict), 0) if verdict in set(Verdict) else 0
