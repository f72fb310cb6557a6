"""The handlers of the consumer: verify a submission, and hold one whose message was parked."""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import transaction

from submissions.jobs.records import JobNotFound
from submissions.jobs.work import fail_job, run_job
from submissions.messages import RESCAN, SUBMIT_JOB, VERIFY, is_queued
from submissions.pipeline.process import process_submission
from submissions.pipeline.run import ACTOR
from submissions.queue.base import InvalidMessage, Message
from submissions.queue.settlement import Handler, Handlers
from submissions.rescan.work import give_up, rescan
from submissions.states import FINAL_STATES
from submissions.store import holds
from submissions.store.queries import read_submission
from submissions.store.records import SubmissionNotFound
from vskill.environments import WorkerEnv
from vskill.fair_slots import FairSlots
from vskill.kv.errors import VersionConflict
from vskill.kv.threads import writers
from vskill.worker_context import require_worker_env

logger = logging.getLogger(__name__)


async def hold(submission_id: str, reason: str) -> None:
    """Hand a submission whose message was parked to a person; do nothing where it has ended or is queued again."""
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
        if submission.state in FINAL_STATES or is_queued(env, submission_id):
            return
        missing = "published" if holds.is_decided(submission) else "checked"
        holds.hold(env, submission, reason=f"it could not be {missing}: {reason}", actor=ACTOR, trigger="queue")


def make_handlers() -> Handlers:
    """Return the handlers for one consumer, which share its slots for scans."""
    # No name has a most: a scan computes, so a slot that is kept free would be a processor that idles.
    slots = FairSlots(settings.SCAN_PROCESSES)

    async def run(message: Message) -> None:
        message.decoded()
        last_attempt = message.errors + 1 >= settings.QUEUE_MAX_ERRORS
        try:
            await process_submission(message.subject, last_attempt=last_attempt, slots=slots)
        except SubmissionNotFound as error:
            raise InvalidMessage(str(error)) from error

    async def on_parked(message: Message, reason: str) -> None:
        await hold(message.subject, reason)

    async def run_whole_job(message: Message) -> None:
        message.decoded()
        try:
            await run_job(require_worker_env(), message.subject)
        except JobNotFound as error:
            raise InvalidMessage(str(error)) from error

    async def on_parked_job(message: Message, reason: str) -> None:
        try:
            await writers.run(fail_job, require_worker_env(), message.subject, reason)
        except JobNotFound as error:
            logger.warning("job %s cannot be marked as failed: %s", message.subject, error)
        except VersionConflict:
            logger.info("job %s moved while it was being marked as failed", message.subject)

    async def run_rescan(message: Message) -> None:
        message.decoded()
        last_attempt = message.errors + 1 >= settings.QUEUE_MAX_ERRORS
        await rescan(require_worker_env(), message.subject, last_attempt=last_attempt, slots=slots)

    async def on_parked_rescan(message: Message, reason: str) -> None:
        await give_up(require_worker_env(), message.subject, reason)

    return {
        VERIFY: Handler(run, on_parked),
        RESCAN: Handler(run_rescan, on_parked_rescan),
        SUBMIT_JOB: Handler(run_whole_job, on_parked_job),
    }
