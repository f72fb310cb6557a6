"""One run over one submission: its fetched package, the scans of it, and the decision they lead to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from marketplace.addresses import UPLOAD_REF
from marketplace.likeness.signature import Signature, signature_as_value
from marketplace.skills.publishers import is_uploaded, publisher_identity
from submissions.pipeline.known_bad import Comparison, compare_package
from submissions.review_rank import STRENGTH, strength
from submissions.source.errors import CommitNotAvailable
from submissions.source.fetching import fetch, repository_url
from submissions.source.git import Snapshot
from submissions.source.lfs.objects import LfsSource
from submissions.source.lfs.remote_objects import LfsLimits
from submissions.source.places import Place
from submissions.source.snapshots import Asked, shared_snapshot
from submissions.source.wanted import Wanted
from submissions.states import State
from submissions.store.batched_transitions import move
from submissions.store.evidence import STRUCTURE, Evidence, read_evidence, write_evidence, write_signature
from submissions.store.held_files import held_value, keep_files
from submissions.store.queries import waiting_paths
from submissions.store.records import Submission
from submissions.store.signs import keep_signs
from submissions.store.transitions import Step
from submissions.uploads.stored import kept_files
from submissions.verification import structure
from submissions.verification.engines.base import Engine, EngineResult, EngineStatus
from submissions.verification.findings import Finding
from submissions.verification.package_verdict import decide_format
from submissions.verification.packages import SkillPackage, files_of_package, files_of_packages, read_package
from submissions.verification.runner import run_engine
from submissions.verification.verdict import Decision, Verdict, VerdictPolicy, holding_findings
from submissions.waivers.judge import Judged, judge
from vskill.environments import WorkerEnv
from vskill.fair_slots import FairSlots
from vskill.hidden_characters import visible
from vskill.kv.threads import readers, writers
from vskill.work_limits import hold_slot

ACTOR: Final = "verification"
_HELD: Final = frozenset({Verdict.HELD, Verdict.HELD_HIGH, Verdict.INCONCLUSIVE})


@dataclass(frozen=True)
class Check:
    """The outcome of one check of a package.

    ``changes`` are the parts of the submission's value that it determines. ``unfinished`` are the results of engines
    that failed or timed out.
    """

    decision: Decision
    changes: dict[str, Any]
    unfinished: tuple[EngineResult, ...] = ()

    def with_verdict(self, verdict: Verdict, summary: str) -> dict[str, Any]:
        """Return ``changes`` with another verdict and the sentence that explains it."""
        decision = {**self.changes["decision"], "verdict": verdict, "summary": summary}
        return {**self.changes, "verdict": verdict, "decision": decision}


@dataclass
class Run:
    """One run over one submission, in ``folder``, which it has to itself.

    ``last_attempt`` says that an engine which fails now is not tried again. ``slots`` bounds the scans of this process.
    ``commit_sha`` is the commit that was really fetched, empty before the fetch, and ``ref`` the branch or tag that it
    is on.
    """

    env: WorkerEnv
    submission: Submission
    folder: Path
    last_attempt: bool
    slots: FairSlots | None
    commit_sha: str = ""
    ref: str = ""
    _package: SkillPackage | None = None
    _comparison: Comparison | None = None
    _folders: int = 0

    async def move(self, following: State, reason: str, trigger: str, changes: dict[str, Any] | None = None) -> None:
        """Move the submission to the state ``following`` for a ``reason``, and write ``changes`` into its value.

        ``trigger`` names the part of the pipeline for the history. Raises ``VersionConflict`` where somebody else has
        moved the submission since it was read.
        """
        self.submission = await move(self.env, Step(self.submission, following, reason, ACTOR, trigger, changes))

    async def package(self) -> SkillPackage:
        """Return the skill at the pinned commit, or at the newest one where the host no longer serves that commit.

        Of an upload it is what was uploaded.
        """
        if self._package is None:
            uploaded = is_uploaded(self.submission.text("repoUrl"))
            self._package = await (self._uploaded_package() if uploaded else self._fetched_package())
        return self._package

    async def _fetched_package(self) -> SkillPackage:
        async with AsyncExitStack() as held:
            snapshot, known_ref = await self._snapshot(held)
            self.commit_sha, self.ref = snapshot.commit_sha, snapshot.ref or known_ref
            destination = self._new_folder("tree")
            return await read_package(
                snapshot, self.submission.text("skillPath"), destination=destination, lfs=self._lfs(snapshot)
            )

    async def _uploaded_package(self) -> SkillPackage:
        """Return the skill that was uploaded; its digest stands where that of a commit would."""
        address, digest = self.submission.text("repoUrl"), self.submission.text("commitSha")
        files = await readers.run(kept_files, self.env, address, digest)
        self.commit_sha, self.ref = digest, UPLOAD_REF
        return await read_package(files, "", destination=self._new_folder("tree"))

    async def comparison(self) -> Comparison:
        """Return what is known of the package beside what is known to be bad; it is compared once."""
        if self._comparison is None:
            self._comparison = await readers.run(compare_package, self.env, await self.package())
        return self._comparison

    @property
    def signature(self) -> Signature | None:
        """Return the signature of the package, ``None`` where it was not compared."""
        return self._comparison.signature if self._comparison is not None else None

    async def keep_signature(self) -> None:
        """Keep the signature of the package beside its evidence, for an operator who remembers it as known bad."""
        made = (await self.comparison()).signature
        await write_signature(self.env, self.submission.id, signature_as_value(made))

    def _lfs(self, snapshot: Snapshot) -> LfsSource:
        # At the last attempt a pointer is what its host gives.
        repository = repository_url(self.env, self.submission.text("repoUrl"))
        limits = LfsLimits(seconds=settings.FETCH_SECONDS)
        return LfsSource(self.env, snapshot, repository, self._new_folder("lfs"), limits, give_up=self.last_attempt)

    async def _snapshot(self, held: AsyncExitStack) -> tuple[Snapshot, str]:
        """Return the snapshot to read, which ``held`` keeps, and the ref that its commit is known to be on ('': none).

        The snapshot of a pinned commit is shared with the other submissions that name it.
        """
        repository = repository_url(self.env, self.submission.text("repoUrl"))
        path = self.submission.text("skillPath")
        wanted = files_of_package(path)
        pinned, known_ref = self.submission.text("commitSha"), self.submission.text("sourceRef")

        async def also() -> Wanted:
            waiting = await readers.run(waiting_paths, self.env, self.submission.text("repoUrl"))
            return files_of_packages([path, *waiting])

        if pinned:
            # An earlier release accepted it without looking for the ref.
            asked = Asked(repository, pinned, wanted, also, find_ref=not known_ref)
            try:
                return await held.enter_async_context(shared_snapshot(self.env, asked)), known_ref
            except CommitNotAvailable:
                # Of the branch that it was submitted from, and never of another one.
                places = (Place(known_ref),) if known_ref not in ("", "HEAD") else ()
                repository = replace(repository, places=places)
        return await fetch(self.env, repository, self._new_folder("git"), wanted=wanted, patient=True), ""

    def forget_package(self) -> None:
        """Fetch again at the next use."""
        self._package = self._comparison = None

    def _new_folder(self, name: str) -> Path:
        self._folders += 1
        folder = self.folder / f"{name}-{self._folders}"
        folder.mkdir()
        return folder

    async def check(self, package: SkillPackage, engines: Sequence[Engine], *, known_bad: bool = False) -> Check:
        """Scan ``package`` with ``engines``, store what they found as evidence, and decide.

        Content that is ``known_bad`` is refused, whatever the engines say. A stored result counts where it is complete
        and of the same content and engine version.
        """
        await self._keep_structure(package.content_hash, package.findings, package.capabilities)
        results = await self._scan(engines, package)
        names = [engine.name for engine in engines]
        judged = await judge(self.env, self.submission.text("identity"), package, results, names, known_bad=known_bad)
        if judged.any_waived or any(one.waived for result in results for one in result.findings):
            await self._keep_waived(judged)
        decision = judged.decision
        rank = await self._prepare_review(judged)
        # A file that was left unread stays unread: only a failure is worth another attempt.
        unfinished = [one for one in results if one.status in (EngineStatus.FAILED, EngineStatus.TIMED_OUT)]
        engine_names = [result.engine for result in results]
        changes = {**self._changes(package, decision, engine_names), STRENGTH: rank}
        return Check(decision, changes, tuple(unfinished))

    async def _keep_waived(self, judged: Judged) -> None:
        """Store with the evidence which findings are waived now, because pages and versions show them from there."""
        content = judged.package.content_hash
        await self._keep_structure(content, judged.package.findings, judged.package.capabilities)
        for result in judged.results:
            await write_evidence(self.env, self.submission.id, content, result)

    async def _prepare_review(self, judged: Judged) -> int:
        """Keep what a reviewer will need of a package that is to be held; return how strong the signs are."""
        decision = judged.decision
        if decision.verdict not in _HELD:
            return 0
        holding = holding_findings(judged.package.findings, judged.results, VerdictPolicy())
        files = await asyncio.to_thread(held_value, judged.package, {one.file for one in decision.findings})
        await keep_files(self.env, self.submission.id, files)
        await writers.run(keep_signs, self.env, self.submission.id, holding)
        severity = max((one.severity.rank for one in holding), default=0)
        return strength(severity, len({one.engine for one in holding}))

    def _changes(self, package: SkillPackage, decision: Decision, engines: Iterable[str]) -> dict[str, Any]:
        # An approval belongs to the check that it was given for, so that a new check takes it away.
        return {
            "skillName": visible(package.name, 100),
            "description": visible(package.description),
            "commitSha": self.commit_sha,
            "sourceRef": self.ref,
            "contentHash": package.content_hash,
            "verdict": decision.verdict,
            "decision": {**_as_value(decision), "engines": [STRUCTURE, *engines]},
            "approvedBy": "",
            "approvalReason": "",
        }

    async def reject_format(self, findings: Sequence[Finding], summary: str) -> Check:
        """Store the findings of a package that cannot be read, and return the decision that follows from them.

        ``summary`` is the sentence that its author reads.
        """
        await self._keep_structure("", findings)
        decision = decide_format(findings, summary)
        return Check(decision, {"verdict": decision.verdict, "decision": _as_value(decision)})

    async def _scan(self, engines: Sequence[Engine], package: SkillPackage) -> list[EngineResult]:
        # All scans have ended when this returns or raises: one that still ran would read a folder that is being
        # removed, and store evidence about files that it did not see.
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
        publisher = publisher_identity(self.submission.text("repoUrl"))
        async with nullcontext() if self.slots is None else hold_slot(self.slots, self.env.name, publisher):
            result = await run_engine(engine, package.root)
        await write_evidence(self.env, self.submission.id, package.content_hash, result)
        return result

    async def _keep_structure(
        self, content_hash: str, findings: Sequence[Finding], capabilities: tuple[str, ...] = ()
    ) -> None:
        """Store the findings of our own checks of the format as those of an engine."""
        result = EngineResult(STRUCTURE, structure.VERSION, EngineStatus.COMPLETE, tuple(findings), capabilities)
        await write_evidence(self.env, self.submission.id, content_hash, result)


def _as_value(decision: Decision) -> dict[str, Any]:
    return {
        "verdict": decision.verdict,
        "summary": decision.summary,
        "reasons": list(decision.reasons),
        "policyHash": decision.policy_hash,
    }


def _still_valid(stored: Evidence, engine: Engine, package: SkillPackage) -> bool:
    result = stored.result
    return (
        stored.content_hash == package.content_hash
        and (result.engine_version, result.adapter) == (engine.version, engine.adapter)
        and result.status is EngineStatus.COMPLETE
    )
