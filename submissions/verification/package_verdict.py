"""Decide about a package from what its reading and the engines found: the same for the server, a scan and a measure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from submissions.verification.engines.base import EngineResult
from submissions.verification.findings import Finding
from submissions.verification.packages import SkillPackage
from submissions.verification.verdict import Decision, VerdictPolicy, decide


def decide_package(
    package: SkillPackage, results: Sequence[EngineResult], engines: Iterable[str], *, known_bad: bool = False
) -> Decision:
    """Return the decision about a package that could be read.

    ``results`` are those of the engines that ran, ``engines`` the names of those that were due. Content that is
    ``known_bad`` is refused, whatever the engines say.
    """
    return decide(
        package.findings,
        results,
        VerdictPolicy(engines=tuple(engines)),
        [package.content_hash] if known_bad else [],
        content_hash=package.content_hash,
        capabilities=package.capabilities,
        inert=package.inert,
    )


def decide_format(findings: Sequence[Finding], summary: str) -> Decision:
    """Return the decision about a folder that is no valid skill; ``summary`` is the sentence that its author reads."""
    return replace(decide(findings, [], VerdictPolicy(engines=())), summary=summary)
