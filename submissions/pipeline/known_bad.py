"""Compare a package with what is known to be bad, and keep its signature for an operator's decision about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from marketplace.likeness.known import find_equal, find_similar, is_any_known
from marketplace.likeness.published import degree
from marketplace.likeness.signature import Signature
from marketplace.models import KnownBad
from submissions.verification.findings import Finding, FindingKind, Severity
from submissions.verification.package_signature import signature_of
from submissions.verification.packages import SkillPackage
from vskill.environments import WorkerEnv

SIMILAR_RULE: Final = "known-bad-similar"


@dataclass(frozen=True)
class Comparison:
    """What is known of a package: its signature, the entry that it equals, or the finding that it is similar to one."""

    signature: Signature
    equal: KnownBad | None = None
    similar: Finding | None = None

    def judged(self, package: SkillPackage) -> SkillPackage:
        """Return ``package`` with the finding, which holds it."""
        return package if self.similar is None else replace(package, findings=(self.similar, *package.findings))


def compare_package(env: WorkerEnv, package: SkillPackage) -> Comparison:
    """Compare a package with the known bad content of an environment; call it on a thread."""
    made = signature_of(package)
    if not is_any_known(env):
        return Comparison(made)
    if (equal := find_equal(env, package.content_hash, made.normal_digest)) is not None:
        return Comparison(made, equal)
    found = find_similar(env, made.sketch)
    if found is None:
        return Comparison(made)
    entry, likeness = found
    finding = Finding(
        rule_id=SIMILAR_RULE,
        # Trust in an owner spares no skill a finding that is critical.
        severity=Severity.CRITICAL,
        title=f"{degree(likeness):.0%} like known bad content: {entry.name}",
        why=f"An operator or a list named that content as bad: {entry.reason}",
        advice="A person has to compare both. What is honest in it can be published by approving it.",
        kind=FindingKind.MALICIOUS,
    )
    return Comparison(made, similar=finding)
