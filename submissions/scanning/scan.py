"""Check the skills of a folder as the server would check them, without a database."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from marketplace.capabilities import Capabilities, is_left_unread
from marketplace.coverage import Coverage, add_up
from marketplace.skills.capability_names import asked_names
from submissions.source.file_source import FileSource
from submissions.verification.engines.base import Engine, EngineResult, contract_in
from submissions.verification.errors import InvalidPackage
from submissions.verification.findings import Finding, FindingKind
from submissions.verification.package_verdict import decide_format, decide_package
from submissions.verification.packages import SkillPackage, read_package
from submissions.verification.runner import EngineRun, measure_engine
from submissions.verification.skill_files import folder_of, name_of, skill_files
from submissions.verification.verdict import Decision

RunEngine = Callable[[Engine, SkillPackage], Awaitable[EngineRun]]


@dataclass(frozen=True)
class ScannedSkill:
    """One skill with its verdict.

    ``path`` is its folder below the folder that was scanned, '' for that folder itself. ``content_hash`` is empty and
    ``runs`` has nothing where the format needs a change first: no engine reads such a skill. ``capabilities`` are those
    that the pre-scan found.
    """

    path: str
    name: str
    decision: Decision
    content_hash: str = ""
    runs: tuple[EngineRun, ...] = ()
    capabilities: tuple[str, ...] = ()
    inert: frozenset[str] = frozenset()

    @property
    def results(self) -> tuple[EngineResult, ...]:
        """Return the results of the engines."""
        return tuple(run.result for run in self.runs)

    @property
    def called(self) -> list[str]:
        """Return what it can do as the engines and the pre-scan call it, in order."""
        return sorted({*self.capabilities, *(name for one in self.results for name in one.capabilities)})

    @property
    def asks_for(self) -> Capabilities:
        """Return what it asks for, as pages and API would say of it."""
        names = asked_names(self.called, contract_in(self.results))
        return Capabilities(names, unread=is_left_unread(self.decision.verdict.value, self._coverage))

    @property
    def not_looked_at(self) -> tuple[Finding, ...]:
        """Return what no engine has read, but for files that hold data alone."""
        unread = set(self._coverage.unread) - self.inert
        return tuple(finding for finding in self._coverage_notes if finding.file in unread)

    @property
    def _coverage_notes(self) -> list[Finding]:
        return [finding for finding in self.decision.findings if finding.kind is FindingKind.COVERAGE]

    @property
    def _coverage(self) -> Coverage:
        statuses = {result.engine: result.status.value for result in self.results}
        return add_up(statuses, ((one.engine, one.file, one.why) for one in self._coverage_notes))


async def _measure(engine: Engine, package: SkillPackage) -> EngineRun:
    return await measure_engine(engine, package.root)


async def scan_skill(
    source: FileSource,
    path: str,
    engines: Sequence[Engine],
    *,
    run: RunEngine = _measure,
    judged: Callable[[SkillPackage, Sequence[EngineRun]], object] = lambda _package, _runs: None,
) -> ScannedSkill:
    """Read, scan and judge the skill in the folder ``path`` of ``source`` ('' for its root).

    ``run`` runs one of the ``engines``; by default in a child process within its limits. ``judged`` is given what the
    verdict was made from. Raises MachineFault where this
    machine cannot run engines, and the errors of ``source``; a folder that is no valid skill is a verdict.
    """
    with tempfile.TemporaryDirectory(prefix="vskill-scan-") as scratch:
        try:
            package = await read_package(source, path, destination=Path(scratch))
        except InvalidPackage as error:
            return ScannedSkill(path, name_of(path), decide_format(error.findings, str(error)))
        # Every engine has ended when this goes on: one that still ran would read a folder that is being removed.
        outcomes = await asyncio.gather(*(run(engine, package) for engine in engines), return_exceptions=True)
    runs: list[EngineRun] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        runs.append(outcome)
    judged(package, runs)
    results = [one.result for one in runs]
    return ScannedSkill(
        path=path,
        name=package.name,
        decision=decide_package(package, results, (engine.name for engine in engines)),
        content_hash=package.content_hash,
        runs=tuple(runs),
        capabilities=package.capabilities,
        inert=package.inert,
    )


def skill_folders(source: FileSource) -> list[str]:
    """Return the folders of ``source`` that hold a SKILL.md, the root ('') and nested ones included, in order."""
    return sorted(folder_of(entry.path) for entry in skill_files(source.entries).values())


async def scan_folder(
    source: FileSource,
    engines: Sequence[Engine],
    *,
    at_once: int = 2,
    done: Callable[[ScannedSkill], None] = lambda _skill: None,
) -> list[ScannedSkill]:
    """Check every skill of ``source`` and return them in the order of their folders.

    ``at_once`` bounds how many skills are checked at the same time; ``done`` is called after each.
    """
    free = asyncio.Semaphore(at_once)

    async def one(folder: str) -> ScannedSkill:
        async with free:
            scanned = await scan_skill(source, folder, engines)
        done(scanned)
        return scanned

    return list(await asyncio.gather(*(one(folder) for folder in skill_folders(source))))
