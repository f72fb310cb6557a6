"""Walk one submission through its states: fetch, verify, decide, publish.

Each step can run again: it reads the present state, works, and moves the submission by one compare-and-set. A worker
that comes too late finds another version and changes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from marketplace.errors import PublicationBlocked
from marketplace.models import KnownBad
from marketplace.skills.blocklist import Block, BlockKind, is_blocked
from marketplace.skills.publishers import owned_by
from submissions.pipeline.publish import publish_package
from submissions.pipeline.run import Run
from submissions.source.errors import SourceError
from submissions.source.fetching import scratch_folder
from submissions.states import State
from submissions.store.evidence import Evidence, all_evidence
from submissions.store.queries import get_submission
from submissions.store.records import Submission
from submissions.verification.engines import get_engines
from submissions.verification.engines.base import Engine
from submissions.verification.errors import EngineIncomplete, InvalidPackage
from submissions.verification.findings import Severity
from submissions.verification.packages import SkillPackage
from submissions.verification.verdict import Decision, Verdict
from vskill.errors import VskillError
from vskill.fair_slots import FairSlots
from vskill.kv.errors import VersionConflict
from vskill.kv.threads import writers
from vskill.worker_context import require_worker_env

# More than any path through the table of states: a submission that goes in circles is given back as an error.
MAX_STEPS: Final = 12

_STATE_OF_VERDICT: Final = {
    Verdict.FORMAT: State.TIER1_FAILED,
    Verdict.REFUSED: State.REJECTED,
    Verdict.HELD_HIGH: State.ON_HOLD,
    Verdict.HELD: State.ON_HOLD,
    Verdict.INCONCLUSIVE: State.ON_HOLD,
    Verdict.NOTES: State.AUTO_APPROVED,
    Verdict.CLEAR: State.AUTO_APPROVED,
    Verdict.NO_ENGINE: State.AUTO_APPROVED,
    Verdict.UNSCANNED: State.VENDOR_APPROVED,
}
_NOT_SCANNED: Final = "Not scanned: its owner is trusted here. Only its format was checked."
_NOT_HELD: Final = "Not held for what the checks found, because its owner is trusted here."


class NotConverging(VskillError):
    """A submission changed again and again while it was being worked on; it is tried again later."""

    code = "not_converging"


async def process_submission(
    submission_id: str, *, last_attempt: bool = False, slots: FairSlots | None = None
) -> Submission:
    """Take one submission as far as it goes in the current environment, and return it in its final state.

    With ``last_attempt`` an engine that fails is not tried again, and the submission is held as inconclusive. ``slots``
    bounds the scans of this process. Raises what a later attempt may mend: transient source errors,
    ``EngineIncomplete``, errors of the database.
    """
    env = require_worker_env()
    submission = await get_submission(env, submission_id)
    async with scratch_folder() as folder:
        run = Run(env, submission, folder, last_attempt, slots)
        for _step in range(MAX_STEPS):
            step = _STEPS.get(run.submission.state)
            if step is None:
                return run.submission
            try:
                await step(run)
            except VersionConflict:
                # An operator or another worker moved it: go on from its present state.
                run.submission = await get_submission(env, submission_id)
    raise NotConverging(f"Submission {submission_id} kept changing while it was being checked. It is tried again.")


async def _begin(run: Run) -> None:
    block = await writers.run(is_blocked, run.env, run.submission.text("repoUrl"))
    if block is not None:
        await run.move(State.BLOCKED, f"on the block list: {block.reason}", "blocklist")
        return
    if await _vendor_approve(run):
        return
    await run.move(State.TIER1_SCANNING, "", "tier1")


def _is_trusted(run: Run) -> bool:
    return owned_by(run.submission.text("repoUrl"), run.env.policy.trusted_owners)


async def _vendor_approve(run: Run) -> bool:
    """Approve a trusted owner's skill unscanned where the policy says so; False where it needs the usual checks."""
    if run.env.policy.scan_trusted_owners or not _is_trusted(run):
        return False
    try:
        package = await run.package()
    except SourceError:
        return False
    if await writers.run(is_blocked, run.env, run.submission.text("repoUrl"), package.content_hash) is not None:
        return False
    comparison = await run.comparison()
    if comparison.equal is not None or comparison.similar is not None:
        return False
    check = await run.check(package, [])
    if _STATE_OF_VERDICT[check.decision.verdict] is not State.AUTO_APPROVED:
        return False
    changes = check.with_verdict(Verdict.UNSCANNED, _NOT_SCANNED)
    await run.move(_STATE_OF_VERDICT[Verdict.UNSCANNED], _NOT_SCANNED, "vendor", changes)
    return True


async def _readable_package(run: Run) -> SkillPackage | None:
    """Return the package, or ``None`` after the submission has ended as TIER1_FAILED."""
    try:
        return await run.package()
    except InvalidPackage as error:
        check = await run.reject_format(error.findings, str(error))
        await run.move(State.TIER1_FAILED, str(error), "structure", check.changes)
    except SourceError as error:
        if error.transient:
            raise
        await run.move(State.TIER1_FAILED, str(error), "fetch", {"verdict": Verdict.FORMAT})
    return None


async def _verify_tier1(run: Run) -> None:
    await _verify(run, get_engines(run.env.policy.tier1_engines), "tier1")


async def _verify_tier2(run: Run) -> None:
    policy = run.env.policy
    await _verify(run, get_engines((*policy.tier1_engines, *policy.tier2_engines)), "tier2")


async def _verify(run: Run, engines: Sequence[Engine], tier: str) -> None:
    package = await _readable_package(run)
    if package is None:
        return
    block = await writers.run(is_blocked, run.env, run.submission.text("repoUrl"), package.content_hash)
    if block is not None:
        await _refuse(run, package, block)
        return
    comparison = await run.comparison()
    if comparison.equal is not None:
        await _refuse_known(run, package, comparison.equal)
        return
    check = await run.check(comparison.judged(package), engines)
    if check.unfinished and not run.last_attempt:
        failures = "; ".join(f"{result.engine} {result.status}: {result.error}" for result in check.unfinished)
        raise EngineIncomplete(f"The check did not finish and is tried again: {failures}")
    following, reason, changes = _STATE_OF_VERDICT[check.decision.verdict], check.decision.summary, check.changes
    if _spared(run, check.decision):
        following, reason = State.VENDOR_APPROVED, _NOT_HELD
        changes = check.with_verdict(check.decision.verdict, _NOT_HELD)
    approved = following in (State.AUTO_APPROVED, State.VENDOR_APPROVED)
    if tier == "tier1" and approved and run.env.policy.tier2_engines:
        await run.move(State.TIER2_SCANNING, "", "tier2")
        return
    if following is State.ON_HOLD:
        await run.keep_signature()
    await run.move(following, reason, tier, changes)


def _spared(run: Run, decision: Decision) -> bool:
    """Return whether trust in the owner spares the skill the hold: its findings are all below critical."""
    if decision.verdict not in (Verdict.HELD, Verdict.HELD_HIGH) or not _is_trusted(run):
        return False
    return all(finding.severity.rank < Severity.CRITICAL.rank for finding in decision.findings)


async def _refuse(run: Run, package: SkillPackage, block: Block) -> None:
    """End a submission that the block list names: a source as BLOCKED, known bad content as REJECTED."""
    if block.kind is not BlockKind.CONTENT:
        await run.move(State.BLOCKED, f"on the block list: {block.reason}", "blocklist")
        return
    # Nothing that an engine could find would change the verdict.
    check = await run.check(package, [], known_bad=True)
    reason = f"{check.decision.summary} The block list says: {block.reason}"
    await run.move(_STATE_OF_VERDICT[check.decision.verdict], reason, "blocklist", check.changes)


async def _refuse_known(run: Run, package: SkillPackage, entry: KnownBad) -> None:
    """End a submission with known bad content as REJECTED, whatever its files, its owner and its name are called."""
    check = await run.check(package, [], known_bad=True)
    reason = f"{check.decision.summary} It is {entry.name}: {entry.reason}"
    await run.move(_STATE_OF_VERDICT[check.decision.verdict], reason, "known_bad", check.changes)


async def _publish(run: Run) -> None:
    try:
        package = await run.package()
    except SourceError as error:
        if error.transient:
            raise
        await run.move(State.ON_HOLD, f"approved, but its source can no longer be read: {error}", "publish")
        return
    evidence = await all_evidence(run.env, run.submission.id)
    if (void := _void(run.submission, package, evidence)) is not None:
        changes = {"commitSha": run.commit_sha, "sourceRef": run.ref, "verdict": "", "decision": None}
        await run.move(State.RESCAN_REQUIRED, void, "publish", changes)
        return
    try:
        run.submission = await writers.run(publish_package, run, package, evidence)
    except PublicationBlocked as error:
        await run.move(State.ON_HOLD, f"approved, but not published: {error}", "publish")


def _void(submission: Submission, package: SkillPackage, evidence: Sequence[Evidence]) -> str | None:
    """Return why the check that a submission has passed does not count for ``package``, or ``None`` where it does."""
    if package.content_hash != submission.text("contentHash"):
        return "the content changed after it was checked; the earlier results are void"
    decision = submission.value.get("decision")
    stored = {one.engine for one in evidence if one.content_hash == package.content_hash}
    # Published without its evidence, a skill would look as if nothing had been found.
    if not isinstance(decision, dict) or not stored.issuperset(decision.get("engines", [])):
        return "what was found about it is no longer there; the earlier results are void"
    return None


async def _rescan(run: Run) -> None:
    run.forget_package()
    await run.move(State.RECEIVED, "checked again because its content changed", "rescan")


_STEPS: Final[dict[State, Callable[[Run], Awaitable[None]]]] = {
    State.RECEIVED: _begin,
    State.TIER1_SCANNING: _verify_tier1,
    State.TIER2_SCANNING: _verify_tier2,
    State.AUTO_APPROVED: _publish,
    State.VENDOR_APPROVED: _publish,
    State.RESCAN_REQUIRED: _rescan,
}
