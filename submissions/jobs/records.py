"""What is stored of a job: the entry ``job:{id}``, and its skills in slices, ``job:{id}:{number}``.

All of them expire together, ``JOBS_KEPT`` after the last write to the job; the submissions that it made stay.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from django.core import signing
from django.utils.crypto import constant_time_compare

from submissions.discovery import DiscoveredSkill, Discovery
from vskill.accounts.audiences import PUBLIC
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.clock import database_now, isoformat
from vskill.kv.errors import InvalidKey
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Outcome as Read

# Skills that one transaction accepts. On SQLite everybody else who writes waits for it.
SLICE: Final = 25
JOBS_KEPT: Final = timedelta(days=30)


class JobNotFound(VskillError):
    """There is no job of that id in this environment, or not any more."""

    code = "job_not_found"


class JobState(StrEnum):
    """How far a job is: its skills are being accepted, all are, or what waits is being withdrawn, or was."""

    ACCEPTING = "accepting"
    ACCEPTED = "accepted"
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Job:
    """A job as it was read.

    ``source``, ``actor`` and ``submitter`` are those of ``intake.accept``, and ``submitter_number`` is the number of
    the account that ``submitter`` named when the job began. ``audience`` is that of ``intake.accept_one``.
    ``total`` is the number of its skills, ``done`` the number of its slices that are accepted, or withdrawn once it is
    being stopped. ``failure`` says why it does not go on by itself, where that is so.
    """

    id: str
    version: int
    state: JobState
    repo_url: str
    commit_sha: str
    ref: str
    source: str
    actor: str
    submitter: str
    total: int
    done: int = 0
    failure: str = ""
    submitter_number: int | None = None
    audience: str | None = PUBLIC
    created_at: str = ""
    updated_at: str = ""

    @property
    def slices(self) -> int:
        """Return the number of slices that its skills are stored in."""
        return -(-self.total // SLICE)

    @property
    def discovery(self) -> Discovery:
        """Return the commit that its skills are of, without the skills."""
        return Discovery(self.repo_url, self.commit_sha, (), self.ref)


@dataclass(frozen=True)
class JobSkill:
    """A skill of a job; ``outcome`` is that of the intake, 'stopped', or '' until it was its turn."""

    skill: DiscoveredSkill
    outcome: str = ""
    reason: str = ""
    submission_id: str = ""


def new_job_id() -> str:
    """Return a new id: ``job_`` and the hex of a random UUID."""
    return f"job_{uuid.uuid4().hex}"


def job_key(job_id: str) -> str:
    """Return the key of a job."""
    return f"job:{job_id}"


def slice_key(job_id: str, number: int) -> str:
    """Return the key of a slice of a job's skills."""
    return f"job:{job_id}:{number:05}"


def jobs_of(env: WorkerEnv) -> KVNamespace:
    """Return the entries that hold the jobs of ``env``."""
    return KVNamespace(KVEntry, env)


def read_job(env: WorkerEnv, job_id: str) -> Job:
    """Return a job, read on the calling thread; raise ``JobNotFound``."""
    try:
        return job_of(jobs_of(env).get_sync(job_key(job_id)), job_id)
    except InvalidKey:
        raise no_such_job(job_id) from None


async def get_job(env: WorkerEnv, job_id: str) -> Job:
    """Return a job; raise ``JobNotFound``."""
    try:
        return job_of(await jobs_of(env).get(job_key(job_id)), job_id)
    except InvalidKey:
        raise no_such_job(job_id) from None


def no_such_job(job_id: str) -> JobNotFound:
    """Return the error for an id that no job has."""
    days = JOBS_KEPT // timedelta(days=1)
    return JobNotFound(f"There is no job {job_id[:100]!r} here; a job is kept for {days} days.")


def job_of(outcome: Read, job_id: str) -> Job:
    """Return the job that was read; raise ``JobNotFound`` where there is no entry, or one of something else."""
    value = None if outcome.absent else outcome.require()
    # A slice is an entry of a key that an id could spell as well.
    if not isinstance(value, dict) or value.get("id") != job_id:
        raise no_such_job(job_id)
    # One that began before a field with a default was there has none.
    fields = {name: value[name] for name in _FIELDS if name in value}
    return Job(version=outcome.version, **{**fields, "state": JobState(value["state"])})


_FIELDS: Final = tuple(name for name in Job.__dataclass_fields__ if name != "version")


def write_job(env: WorkerEnv, job: Job, **changes: Any) -> Job:
    """Write a job with ``changes`` where nobody else has written it since, and return it as it now is.

    Version 0 makes a new one. Raises ``VersionConflict``, and writes nothing then.
    """
    now = isoformat(database_now(env.database))
    changed = replace(job, **{"created_at": job.created_at or now, **changes, "updated_at": now})
    value = {name: getattr(changed, name) for name in _FIELDS}
    version = jobs_of(env).put_sync(job_key(job.id), value, expect_version=job.version, ttl=JOBS_KEPT)
    return replace(changed, version=version)


def slice_value(skills: list[JobSkill]) -> list[list[Any]]:
    """Return the stored form of a slice."""
    return [
        [
            one.skill.path,
            one.skill.name,
            one.skill.description,
            list(one.skill.problems),
            one.skill.source_digest,
            [list(one.skill.also_at), one.skill.continues, one.skill.slug],
            one.outcome,
            one.reason,
            one.submission_id,
        ]
        for one in skills
    ]


def skills_of(outcome: Read) -> list[JobSkill]:
    """Return the skills of a slice that was read; raises what ``Outcome.require`` raises."""
    return [
        JobSkill(
            DiscoveredSkill(
                path, name, description, tuple(problems), digest, also_at=tuple(also_at), continues=before, slug=slug
            ),
            *rest,
        )
        for path, name, description, problems, digest, (also_at, before, slug), *rest in outcome.require()
    ]


def stop_key(env: WorkerEnv, job_id: str) -> str:
    """Return the secret that lets its holder stop a job; whoever starts a job is given it."""
    return signing.Signer(salt=f"vskill.jobs.stop.{env.name}").signature(job_id)


def may_stop(env: WorkerEnv, job_id: str, key: str) -> bool:
    """Tell whether ``key`` is the secret of that job."""
    return constant_time_compare(key, stop_key(env, job_id))
