"""Check every sample of a corpus as the server would, and keep the verdict of each engine and of all together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from submissions.evaluation.labels import Sample
from submissions.evaluation.stored_runs import StoredRuns
from submissions.scanning.scan import ScannedSkill, scan_skill
from submissions.source.plain_folder import open_folder
from submissions.verification.engines.base import Engine, EngineStatus
from submissions.verification.findings import Finding, FindingKind, Severity
from submissions.verification.package_verdict import decide_package
from submissions.verification.packages import SkillPackage
from submissions.verification.runner import EngineRun, measure_engine
from submissions.verification.verdict import Verdict, VerdictPolicy

TOGETHER: Final = "together"
_HOLDS_FROM: Final = VerdictPolicy().hold_from


@dataclass(frozen=True)
class Measured:
    """What came of one sample.

    ``verdicts`` has one for each engine alone, and one under ``TOGETHER``, which is what the server would say.
    ``cpu_seconds`` are by engine, ``failed`` names the engines that gave no usable answer, and ``holding`` the rules
    whose findings hold, as ``engine/rule``; ``said`` are those of all findings, and ``capability/name``.
    """

    sample: Sample
    verdicts: Mapping[str, Verdict]
    content_hash: str = ""
    cpu_seconds: Mapping[str, float] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    holding: tuple[str, ...] = ()
    said: tuple[str, ...] = ()


async def measure(
    samples: Sequence[Sample],
    corpus: Path,
    engines: Sequence[Engine],
    *,
    stored: StoredRuns | None = None,
    processes: int = 1,
    done: Callable[[Measured], None] = lambda _measured: None,
) -> list[Measured]:
    """Check ``samples``, which lie in the folder ``corpus``, and return what came of each, in their order.

    ``processes`` is how many engines run at once. What is in ``stored`` is not run again. ``done`` is called after each
    sample. Raises MachineFault where this machine cannot run engines, and FetchFailed for a file that cannot be read.
    """
    free = asyncio.Semaphore(processes)
    # Reading is held back as well: an open package takes disk space and memory.
    reading = asyncio.Semaphore(2 * processes)

    async def run(engine: Engine, package: SkillPackage) -> EngineRun:
        if stored is not None and (kept := stored.get(engine, package)) is not None:
            return kept
        async with free:
            outcome = await measure_engine(engine, package.root)
        if stored is not None:
            stored.put(engine, package, outcome)
        return outcome

    async def one(sample: Sample) -> Measured:
        async with reading:
            alone: dict[str, Verdict] = {}
            source = await asyncio.to_thread(open_folder, corpus / sample.path)
            scanned = await scan_skill(source, "", engines, run=run, judged=lambda *given: alone.update(_alone(*given)))
        measured = _measured(sample, scanned, alone, engines)
        done(measured)
        return measured

    return list(await asyncio.gather(*(one(sample) for sample in samples)))


def _alone(package: SkillPackage, runs: Sequence[EngineRun]) -> dict[str, Verdict]:
    """Return the verdict that each engine would lead to if it were the only one."""
    return {run.result.engine: decide_package(package, [run.result], [run.result.engine]).verdict for run in runs}


def _measured(
    sample: Sample, scanned: ScannedSkill, alone: Mapping[str, Verdict], engines: Sequence[Engine]
) -> Measured:
    verdict = scanned.decision.verdict
    verdicts = {engine.name: alone.get(engine.name, verdict) for engine in engines}
    failed = (EngineStatus.FAILED, EngineStatus.TIMED_OUT)
    return Measured(
        sample=sample,
        verdicts={**verdicts, TOGETHER: verdict},
        content_hash=scanned.content_hash,
        cpu_seconds={run.result.engine: run.cpu_seconds for run in scanned.runs},
        failed=tuple(result.engine for result in scanned.results if result.status in failed),
        holding=tuple(sorted({f"{one.engine}/{one.rule_id}" for one in scanned.decision.findings if _holds(one)})),
        said=tuple(sorted(_said(scanned))),
    )


def _said(scanned: ScannedSkill) -> set[str]:
    rules = {f"{one.engine}/{one.rule_id}" for one in scanned.decision.findings if one.severity is not Severity.INFO}
    return rules | {f"capability/{name}" for name in scanned.called}


def _holds(finding: Finding) -> bool:
    return finding.kind in (FindingKind.RISK, FindingKind.MALICIOUS) and finding.severity.rank >= _HOLDS_FROM.rank
