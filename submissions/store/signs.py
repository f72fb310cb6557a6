"""Which rules hold a submission, and what a reviewer decided: a row for each, from which accuracy is counted."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from django.db import transaction

from submissions.models import RuleSign
from submissions.store.evidence import STRUCTURE, all_evidence_sync
from submissions.verification.findings import Finding
from submissions.verification.verdict import VerdictPolicy, holding_findings
from vskill.environments import WorkerEnv
from vskill.kv.errors import EntryUnavailable


class SignOutcome(StrEnum):
    """What a reviewer decided about a submission that a rule held; ``open`` is before that, or after an undo."""

    OPEN = ""
    UPHELD = "upheld"
    OVERTURNED = "overturned"


def keep_signs(env: WorkerEnv, submission_id: str, holding: Iterable[Finding]) -> None:
    """Note the rules of the findings that hold a submission, in place of those without a decision."""
    strongest: dict[tuple[str, str], Finding] = {}
    for finding in holding:
        key = (finding.engine[:64], finding.rule_id[:200])
        if key not in strongest or finding.severity.rank > strongest[key].severity.rank:
            strongest[key] = finding
    rows = RuleSign.objects.using(env.database)
    with transaction.atomic(using=env.database):
        rows.filter(namespace=env.name, submission_id=submission_id, outcome=SignOutcome.OPEN).delete()
        rows.bulk_create(
            [
                RuleSign(
                    namespace=env.name, submission_id=submission_id, engine=engine, rule_id=rule, severity=one.severity
                )
                for (engine, rule), one in sorted(strongest.items())
            ],
            ignore_conflicts=True,
        )


def decide_signs(env: WorkerEnv, submission_id: str, outcome: SignOutcome) -> None:
    """Note what was decided about a submission for each rule that held it, within the caller's transaction.

    What an earlier release held has no rows yet; they are made from its evidence, if that can be read.
    """
    rows = RuleSign.objects.using(env.database).filter(namespace=env.name, submission_id=submission_id)
    if not rows.exists():
        try:
            keep_signs(env, submission_id, stored_holding(env, submission_id))
        except EntryUnavailable:
            return
    rows.update(outcome=outcome)


def overturn_rules(env: WorkerEnv, submission_id: str, rules: Iterable[tuple[str, str]]) -> None:
    """Note that a reviewer accepts what some rules of some engines held a submission for, and leave the others open.

    It is done within the caller's transaction; each of ``rules`` is an engine and a rule.
    """
    rows = RuleSign.objects.using(env.database).filter(namespace=env.name, submission_id=submission_id)
    for engine, rule in sorted(set(rules)):
        rows.filter(engine=engine[:64], rule_id=rule[:200]).update(outcome=SignOutcome.OVERTURNED)


def stored_holding(env: WorkerEnv, submission_id: str) -> tuple[Finding, ...]:
    """Return the stored findings that hold a submission, the most severe first."""
    evidence = all_evidence_sync(env, submission_id)
    structure = [finding for one in evidence if one.engine == STRUCTURE for finding in one.result.findings]
    results = [one.result for one in evidence if one.engine != STRUCTURE]
    return holding_findings(structure, results, VerdictPolicy())
