"""What one run over one submission works with: the fetched package, and the scans of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from submissions.source.errors import CommitNotAvailable
from submissions.source.fetching import fetch, repository_url
from submissions.source.packages import SkillPackage, read_package
from submissions.states import State
from submissions.store.batched_transitions import move
from submissions.store.evidence import STRUCTURE, Evidence, read_evidence, write_evidence
from submissions.store.records import Submission
from submissions.store.transitions import Step
from submissions.verification import structure
from submissions.verification.engines.base import Engine, EngineResult, EngineStatus
from submissions.verification.findings import Finding
from submissions.verification.runner import run_engine
from submissions.verification.verdict import Decision
from vskill.environments import WorkerEnv
from vskill.work_limits import place

ACTOR: Final = "verification"


@dataclass
class Workspace:
    """One run over one submission, in a folder of its own.

    ``slots`` bounds the scans of this process. ``commit_sha`` is the commit that was really fetched, empty before.
    """

    env: WorkerEnv
    submission: Submission
    folder: Path
    last_attempt: bool
    slots: asyncio.Semaphore | None
    commit_sha: str = ""
    _package: SkillPackage | None = None
    _folders: int = 0

    async def move(self, following: State, reason: str, trigger: str, changes: dict[str, Any] | None = None) -> None:
        """Move the submission to another state; raise ``VersionConflict`` where somebody else moved it."""
        wanted = Step(self.submission, following, reason, ACTOR, trigger, changes)
        self.submission = await move(self.env, wanted)

    async def package(self) -> SkillPackage:
        """Return the skill at the pinned commit; at the newest one where the host no longer gives the pinned commit."""
        if self._package is None:
            repository = repository_url(self.env, self.submission.text("repoUrl"))
            pinned = self.submission.text("commitSha") or None
            try:
                snapshot = await fetch(self.env, repository, self._new_folder("git"), commit_sha=pinned, patient=True)
            except CommitNotAvailable:
                snapshot = await fetch(self.env, repository, self._new_folder("git"), patient=True)
            self.commit_sha = snapshot.commit_sha
            self._package = await read_package(
                snapshot, self.submission.text("skillPath"), destination=self._new_folder("tree")
            )
        return self._package

    def forget_package(self) -> None:
        """Fetch again at the next use."""
        self._package = None

    def _new_folder(self, name: str) -> Path:
        self._folders += 1
        folder = self.folder / f"{name}-{self._folders}"
        folder.mkdir()
        return folder

    def described(self, package: SkillPackage, decision: Decision, engines: Iterable[str]) -> dict[str, Any]:
        """Return the parts of the value that a check by ``engines`` found out.

        An approval belongs to the check that it was given for, so a new check takes it away.
        """
        return {
            "skillName": package.name,
            "description": package.description,
            "commitSha": self.commit_sha,
            "contentHash": package.content_hash,
            "verdict": decision.verdict,
            "decision": {
                "verdict": decision.verdict,
                "summary": decision.summary,
                "reasons": list(decision.reasons),
                "policyHash": decision.policy_hash,
                "engines": [STRUCTURE, *engines],
            },
            "approvedBy": "",
            "approvalReason": "",
        }

    async def scan(self, engines: Sequence[Engine], package: SkillPackage) -> list[EngineResult]:
        """Return the result of each engine for this content: the stored one where it is complete, a new one
        otherwise.

        All of them have ended when this returns or raises: one that still ran would read a folder that is being
        removed, and vouch for what it did not see.
        """
        scans = [asyncio.create_task(self._scan_one(engine, package)) for engine in engines]
        try:
            return await asyncio.gather(*scans)
        finally:
            for scan in scans:
                scan.cancel()
            await asyncio.gather(*scans, return_exceptions=True)

    async def _scan_one(self, engine: Engine, package: SkillPackage) -> EngineResult:
        stored = await read_evidence(self.env, self.submission.id, engine.name)
        if stored is not None and _still_valid(stored, engine, package):
            return stored.result
        async with nullcontext() if self.slots is None else place(self.slots):
            result = await run_engine(engine, package.root)
        await write_evidence(self.env, self.submission.id, package.content_hash, result)
        return result

    async def keep_structure(
        self, content_hash: str, findings: Sequence[Finding], capabilities: tuple[str, ...] = ()
    ) -> None:
        """Store what our own checks of the format found, as the engine that they are."""
        result = EngineResult(STRUCTURE, structure.VERSION, EngineStatus.COMPLETE, tuple(findings), capabilities)
        await write_evidence(self.env, self.submission.id, content_hash, result)


def _still_valid(stored: Evidence, engine: Engine, package: SkillPackage) -> bool:
    result = stored.result
    return (
        stored.content_hash == package.content_hash
        and (result.engine_version, result.adapter) == (engine.version, engine.adapter)
        and result.status is EngineStatus.COMPLETE
    )
