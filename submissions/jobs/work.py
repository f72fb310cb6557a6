"""Start a job, work it off in slices, and stop it.

Each slice is one transaction: its submissions, their messages, what became of each, and how far the job is. A process
that is killed leaves a slice done or not begun, and the job's message brings it back; two that work on one job at once
find another version of it, and one of them starts over with the next slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from django.db import transaction

from submissions import messages
from submissions.discovery import DiscoveredSkill, Discovery
from submissions.intake import (
    INTERNAL,
    Accepted,
    IntakeBusy,
    Outcome,
    accept,
    accept_offered,
    accept_one,
    is_offered,
)
from submissions.jobs.records import (
    JOBS_KEPT,
    SLICE,
    Job,
    JobSkill,
    JobState,
    jobs_of,
    new_job_id,
    read_job,
    skills_of,
    slice_key,
    slice_value,
    write_job,
)
from submissions.operations import dequeue
from submissions.states import IllegalTransition, State
from submissions.store.queries import read_submission
from submissions.submitter import SUBMITTER_NUMBER, number_of
from vskill.accounts.audiences import PUBLIC
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.errors import EntryUnavailable, VersionConflict
from vskill.kv.threads import writers

# More skills than this are a job; so many are accepted while a request waits.
AT_ONCE: Final = 50
# One step of priority is a minute: what somebody submits by itself is not kept waiting by thousands of others.
PRIORITY: Final = -10
FAILED: Final = "failed"
STOPPED: Final = "stopped"
_STOP_REASON: Final = "the job that it was submitted with was stopped"


async def take_in(
    env: WorkerEnv,
    discovery: Discovery,
    *,
    source: str,
    actor: str,
    submitter: str = "",
    audience: str = PUBLIC,
    picked: Sequence[DiscoveredSkill] | None = None,
) -> Job | list[Accepted]:
    """Submit skills of a discovery: at once, or as a job where they are more than ``AT_ONCE``.

    ``source``, ``actor``, ``submitter`` and ``audience`` are those of ``intake.accept``. ``picked`` are the skills that
    a person chose; by default it is what the discovery offers. Returns the job, or the answer for each skill.
    """
    by: Any = {"source": source, "actor": actor, "submitter": submitter, "audience": audience}
    if len(discovery.skills if picked is None else picked) > AT_ONCE:
        return await writers.run(start_job, env, discovery, picked=picked, **by)
    if picked is None:
        return await accept_offered(env, discovery, **by)
    return await accept(env, discovery, [one.path for one in picked], **by)


def start_job(
    env: WorkerEnv,
    discovery: Discovery,
    *,
    source: str,
    actor: str,
    submitter: str = "",
    audience: str | None = PUBLIC,
    picked: Sequence[DiscoveredSkill] | None = None,
    here: bool = False,
) -> Job:
    """Write a job that submits skills of a discovery, with its message, in one transaction on the calling thread.

    ``source``, ``actor``, ``submitter`` and ``audience`` are those of ``intake.accept_one``, and ``picked`` is that of
    ``take_in``. With ``here`` the caller works it off itself by ``run_job``; a consumer then only takes it over where
    the caller does not get on with it.
    """
    if picked is None:
        pending = [
            JobSkill(one) if is_offered(discovery, one) else JobSkill(one, str(Outcome.INTERNAL), INTERNAL)
            for one in discovery.skills
        ]
    else:
        pending = [JobSkill(one) for one in picked]
    job = Job(
        id=new_job_id(),
        version=0,
        state=JobState.ACCEPTING,
        repo_url=discovery.repo_url,
        commit_sha=discovery.commit_sha,
        ref=discovery.ref,
        source=source,
        actor=actor,
        submitter=submitter,
        submitter_number=number_of(submitter),
        audience=audience,
        total=len(pending),
    )
    with transaction.atomic(using=env.database):
        for number in range(job.slices):
            part = pending[number * SLICE : (number + 1) * SLICE]
            jobs_of(env).put_sync(slice_key(job.id, number), slice_value(part), ttl=JOBS_KEPT)
        job = write_job(env, job)
        messages.send_job(env, job.id, later=here)
    return job


async def run_job(env: WorkerEnv, job_id: str) -> Job:
    """Work a job off as far as it goes, and return it; another process may work on it at the same time.

    Raises ``JobNotFound``, and what a later attempt may mend: errors of the database, ``IntakeBusy``.
    """
    while (job := await step(env, job_id)).state in (JobState.ACCEPTING, JobState.STOPPING):
        pass
    return job


async def step(env: WorkerEnv, job_id: str) -> Job:
    """Work off the next slice of a job, and return the job as it then is."""
    return await writers.run(_step, env, job_id)


def _step(env: WorkerEnv, job_id: str) -> Job:
    try:
        with transaction.atomic(using=env.database):
            job = read_job(env, job_id)
            if job.state is JobState.ACCEPTING:
                return _next_slice(env, job, JobState.ACCEPTED)
            if job.state is JobState.STOPPING:
                return _next_slice(env, job, JobState.STOPPED)
            return job
    except VersionConflict:
        # Another process has worked off the slice, or somebody has stopped the job: nothing of it was written here.
        return read_job(env, job_id)


def _next_slice(env: WorkerEnv, job: Job, following: JobState) -> Job:
    if job.done < job.slices:
        key = slice_key(job.id, job.done)
        read = jobs_of(env).get_sync(key)
        work = _accept if job.state is JobState.ACCEPTING else _withdraw
        skills = [work(env, job, one) for one in skills_of(read)]
        jobs_of(env).put_sync(key, slice_value(skills), expect_version=read.version, ttl=JOBS_KEPT)
        job = replace(job, done=job.done + 1)
    return write_job(env, job, failure="", **({"state": following} if job.done >= job.slices else {}))


def _accept(env: WorkerEnv, job: Job, one: JobSkill) -> JobSkill:
    if one.outcome:
        return one
    try:
        with transaction.atomic(using=env.database):
            answer = accept_one(
                env,
                job.discovery,
                one.skill,
                source=job.source,
                actor=job.actor,
                submitter=job.submitter,
                audience=job.audience,
                priority=PRIORITY,
                more_fields={SUBMITTER_NUMBER: job.submitter_number},
            )
    except (EntryUnavailable, IntakeBusy, VersionConflict):
        raise
    except VskillError as error:
        # One skill whose entry cannot be read does not keep the others out.
        return replace(one, outcome=FAILED, reason=str(error))
    return replace(
        one,
        outcome=str(answer.outcome),
        reason=answer.reason,
        submission_id=answer.submission.id if answer.submission is not None else "",
    )


def _withdraw(env: WorkerEnv, job: Job, one: JobSkill) -> JobSkill:
    """Take out of the queue what the job put there and what nobody has begun to check; the rest stays as it is."""
    if not one.outcome:
        return replace(one, outcome=STOPPED, reason="the job was stopped before it was its turn")
    if one.outcome == Outcome.CREATED and read_submission(env, one.submission_id).state is State.RECEIVED:
        try:
            with transaction.atomic(using=env.database):
                dequeue(env, one.submission_id, actor=job.actor, reason=_STOP_REASON)
        except (IllegalTransition, VersionConflict):
            # Its check began at this moment.
            return one
    return one


def stop_job(env: WorkerEnv, job_id: str) -> Job:
    """Stop a job on the calling thread, and return it: what waits is withdrawn, what is done or in work stays.

    A job that is being stopped already is left alone. Raises ``JobNotFound``.
    """
    for _attempt in range(20):
        try:
            with transaction.atomic(using=env.database):
                job = read_job(env, job_id)
                if job.state in (JobState.STOPPING, JobState.STOPPED):
                    return job
                job = write_job(env, job, state=JobState.STOPPING, done=0, failure="")
                messages.send_job(env, job_id, restart=True)
                return job
        except VersionConflict:
            # A slice was accepted at this moment.
            continue
    raise IntakeBusy("The job moves too fast to be stopped at this moment. Nothing was changed; please try again.")


def fail_job(env: WorkerEnv, job_id: str, reason: str) -> None:
    """Note on the calling thread why a job does not go on by itself, where it has not ended."""
    with transaction.atomic(using=env.database):
        job = read_job(env, job_id)
        if job.state in (JobState.ACCEPTING, JobState.STOPPING):
            write_job(env, job, failure=reason)
