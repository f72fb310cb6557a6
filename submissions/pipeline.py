"""Walk one submission through its states: fetch, verify, decide, publish.

Each step may run again: it reads what is there, works, and moves the submission by one compare-and-set. A worker that
comes too late finds another version and changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from django.conf import settings
from django.db import transaction

from marketplace.blocklist import is_blocked
from marketplace.errors import PublicationBlocked
from submissions.evidence import Evidence, all_evidence
from submissions.models import QueueMessage
from submissions.publication import publish_package
from submissions.queue.base import InvalidMessage, Message
from submissions.queue.consumer import Handler, Handlers
from submissions.source.errors import InvalidPackage, SourceError
from submissions.source.packages import SkillPackage
from submissions.sources import repository_url, scratch_folder
from submissions.states import FINAL_STATES, State
from submissions.store import Submission, SubmissionNotFound, get_submission, read_submission, transition
from submissions.verification.engines import get_engines
from submissions.verification.engines.base import Engine, EngineStatus
from submissions.verification.verdict import Verdict, VerdictPolicy, decide
from submissions.workspace import ACTOR, Workspace
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.errors import VersionConflict
from vskill.kv.threads import writers
from vskill.worker_context import require_worker_env

logger = logging.getLogger(__name__)

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


async def hold(submission_id: str, reason: str) -> None:
    """Hand a submission that the queue has given up to a person; do nothing for one that has ended, or was put back
    into the queue meanwhile."""
    env = require_worker_env()
    try:
        await writers.run(_hold, env, submission_id, reason)
    except SubmissionNotFound as error:
        logger.warning("submission %s cannot be held: %s", submission_id, error)
    except VersionConflict:
        logger.info("submission %s moved while it was being held and was left as it is", submission_id)


def _hold(env: WorkerEnv, submission_id: str, reason: str) -> None:
    with transaction.atomic(using=env.database):
        submission = read_submission(env, submission_id)
        messages = QueueMessage.objects.using(env.database).filter(environment=env.name, subject=submission_id)
        if submission.state in FINAL_STATES or messages.filter(kind=VERIFY, parked_at__isnull=True).exists():
            return
        decided = submission.state in (State.AUTO_APPROVED, State.VENDOR_APPROVED)
        transition(
            env,
            submission,
            State.ON_HOLD,
            reason=f"it could not be {'published' if decided else 'checked'}: {reason}",
            actor=ACTOR,
            trigger="queue",
            changes={} if decided else {"verdict": Verdict.INCONCLUSIVE},
        )


def make_handlers() -> Handlers:
    """Return the handlers of the submission queue for one consumer, which share its slots for scans."""
    slots = asyncio.Semaphore(settings.SCAN_PROCESSES)

    async def run(message: Message) -> None:
        message.decoded()
        last_attempt = message.errors + 1 >= settings.QUEUE_MAX_ERRORS
        try:
            await process_submission(message.subject, last_attempt=last_attempt, slots=slots)
        except SubmissionNotFound as error:
            raise InvalidMessage(str(error)) from error

    async def give_up(message: Message, reason: str) -> None:
        await hold(message.subject, reason)

    return {VERIFY: Handler(run, give_up)}
