"""Walk one submission through its states: fetch, verify, decide, publish.

Each step may run again: it reads what is there, works, and moves the submission by one compare-and-set. A worker that
comes too late finds another version and changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from marketplace.errors import PublicationBlocked
from marketplace.skills.blocklist import is_blocked
from submissions.pipeline.publish import publish_package
from submissions.pipeline.run import Workspace
from submissions.source.errors import InvalidPackage, SourceError
from submissions.source.fetching import repository_url, scratch_folder
from submissions.source.packages import SkillPackage
from submissions.states import State
from submissions.store.evidence import Evidence, all_evidence
from submissions.store.queries import get_submission
from submissions.store.records import Submission
from submissions.verification.engines import get_engines
from submissions.verification.engines.base import Engine, EngineStatus
from submissions.verification.verdict import Verdict, VerdictPolicy, decide
from vskill.errors import VskillError
from vskill.kv.errors import VersionConflict
from vskill.kv.threads import writers
from vskill.worker_context import require_worker_env

VERIFY: Final = "verify_submission"
# More steps than any way through the table of states has: a submission that goes round in circles is given back as an
# error.
MAX_STEPS: Final = 12

_STATE_OF_VERDICT: Final = {
    Verdict.FORMAT: State.TIER1_FAILED,
    Verdict.REFUSED: State.REJECTED,
    Verdict.HELD_HIGH: State.ON_HOLD,
    Verdict.HELD: State.ON_HOLD,
    Verdict.INCONCLUSIVE: State.ON_HOLD,
    Verdict.NOTES: State.AUTO_APPROVED,
    Verdict.CLEAR: State.AUTO_APPROVED,
}


class EngineIncomplete(VskillError):
    """An engine that was due did not finish; the check is tried again."""

    code = "engine_incomplete"


class NotConverging(VskillError):
    """A submission changed again and again while it was being worked on; it is tried again later."""

    code = "not_converging"


async def process_submission(
    submission_id: str, *, last_attempt: bool = False, slots: asyncio.Semaphore | None = None
) -> Submission:
    """Take one submission as far as it goes in the current environment, and return it as it then is.

    ``last_attempt`` says that an engine which fails now is not tried again: the submission is then held as
    inconclusive. Raises what a later attempt may mend: transient source errors, ``EngineIncomplete``, errors of the
    database.
    """
    env = require_worker_env()
    submission = await get_submission(env, submission_id)
    async with scratch_folder() as folder:
        work = Workspace(env, submission, folder, last_attempt, slots)
        for _step in range(MAX_STEPS):
            step = _STEPS.get(work.submission.state)
            if step is None:
                return work.submission
            try:
                await step(work)
            except VersionConflict:
                # An operator or another worker moved it: go on from where it is now.
                work.submission = await get_submission(env, submission_id)
    raise NotConverging(f"Submission {submission_id} kept changing while it was being checked. It is tried again.")


async def _begin(work: Workspace) -> None:
    block = await writers.run(is_blocked, work.env, work.submission.text("repoUrl"))
    if block is not None:
        await work.move(State.BLOCKED, f"on the block list: {block.reason}", "blocklist")
        return
    if await _vendor_approve(work):
        return
    await work.move(State.TIER1_SCANNING, "", "tier1")


def _trusted(work: Workspace) -> bool:
    repository = repository_url(work.env, work.submission.text("repoUrl"))
    return f"{repository.host}/{repository.owner}" in work.env.policy.trusted_owners


async def _vendor_approve(work: Workspace) -> bool:
    """Approve a trusted owner's skill by the rules of the format alone; return False where it must go the usual way."""
    try:
        if not _trusted(work):
            return False
        package = await work.package()
    except SourceError:
        return False
    decision = decide(
        package.findings,
        [],
        VerdictPolicy(engines=()),
        content_hash=package.content_hash,
        capabilities=package.capabilities,
    )
    if _STATE_OF_VERDICT[decision.verdict] is not State.AUTO_APPROVED:
        return False
    await work.keep_structure(package.content_hash, package.findings, package.capabilities)
    await work.move(
        State.VENDOR_APPROVED,
        "its owner is trusted here; checked by the rules of the format alone",
        "vendor",
        work.described(package, decision, []),
    )
    return True


async def _readable(work: Workspace) -> SkillPackage | None:
    """Return the package, or ``None`` after the submission has ended as TIER1_FAILED."""
    try:
        return await work.package()
    except InvalidPackage as error:
        await work.keep_structure("", error.findings)
        decision = decide(error.findings, [], VerdictPolicy(engines=()))
        changes = {
            "verdict": Verdict.FORMAT,
            "decision": {
                "verdict": Verdict.FORMAT,
                "summary": str(error),
                "reasons": list(decision.reasons),
                "policyHash": decision.policy_hash,
            },
        }
        await work.move(State.TIER1_FAILED, str(error), "structure", changes)
    except SourceError as error:
        if error.transient:
            raise
        await work.move(State.TIER1_FAILED, str(error), "fetch", {"verdict": Verdict.FORMAT})
    return None


async def _verify_tier1(work: Workspace) -> None:
    await _verify(work, get_engines(work.env.policy.tier1_engines), "tier1")


async def _verify_tier2(work: Workspace) -> None:
    policy = work.env.policy
    await _verify(work, get_engines((*policy.tier1_engines, *policy.tier2_engines)), "tier2")


async def _verify(work: Workspace, engines: Sequence[Engine], tier: str) -> None:
    package = await _readable(work)
    if package is None:
        return
    block = await writers.run(is_blocked, work.env, work.submission.text("repoUrl"), package.content_hash)
    if block is not None:
        await work.move(State.BLOCKED, f"on the block list: {block.reason}", "blocklist")
        return
    await work.keep_structure(package.content_hash, package.findings, package.capabilities)
    results = await work.scan(engines, package)
    # A part that was left unread stays unread: only a failure is worth another try.
    unfinished = [result for result in results if result.status in (EngineStatus.FAILED, EngineStatus.TIMED_OUT)]
    if unfinished and not work.last_attempt:
        told = "; ".join(f"{result.engine} {result.status}: {result.error}" for result in unfinished)
        raise EngineIncomplete(f"The check did not finish and is tried again: {told}")
    due = VerdictPolicy(engines=tuple(engine.name for engine in engines))
    decision = decide(
        package.findings, results, due, content_hash=package.content_hash, capabilities=package.capabilities
    )
    following = _STATE_OF_VERDICT[decision.verdict]
    if tier == "tier1" and following is State.AUTO_APPROVED and work.env.policy.tier2_engines:
        await work.move(State.TIER2_SCANNING, "", "tier2")
        return
    names = [result.engine for result in results]
    await work.move(following, decision.summary, tier, work.described(package, decision, names))


async def _publish(work: Workspace) -> None:
    try:
        package = await work.package()
    except SourceError as error:
        if error.transient:
            raise
        await work.move(State.ON_HOLD, f"approved, but its source can no longer be read: {error}", "publish")
        return
    evidence = await all_evidence(work.env, work.submission.id)
    if (void := _void(work.submission, package, evidence)) is not None:
        changes = {"commitSha": work.commit_sha, "verdict": "", "decision": None}
        await work.move(State.RESCAN_REQUIRED, void, "publish", changes)
        return
    try:
        work.submission = await writers.run(publish_package, work, package, evidence)
    except PublicationBlocked as error:
        await work.move(State.ON_HOLD, f"approved, but not published: {error}", "publish")


def _void(submission: Submission, package: SkillPackage, evidence: Sequence[Evidence]) -> str | None:
    """Return why the check that a submission has passed does not count for ``package``, or ``None`` where it does."""
    if package.content_hash != submission.text("contentHash"):
        return "the content changed after it was checked; the earlier results are void"
    decision = submission.value.get("decision")
    stored = {one.engine for one in evidence if one.content_hash == package.content_hash}
    # Published without what an engine found, a skill would look as if nothing had been found.
    if not isinstance(decision, dict) or not stored.issuperset(decision.get("engines", [])):
        return "what was found about it is no longer there; the earlier results are void"
    return None


async def _rescan(work: Workspace) -> None:
    work.forget_package()
    await work.move(State.RECEIVED, "checked again because its content changed", "rescan")


_STEPS: Final[dict[State, Callable[[Workspace], Awaitable[None]]]] = {
    State.RECEIVED: _begin,
    State.TIER1_SCANNING: _verify_tier1,
    State.TIER2_SCANNING: _verify_tier2,
    State.AUTO_APPROVED: _publish,
    State.VENDOR_APPROVED: _publish,
    State.RESCAN_REQUIRED: _rescan,
}
