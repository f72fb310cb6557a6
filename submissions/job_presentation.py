"""What pages and API say about jobs of many submissions, in the same words everywhere."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from submissions.jobs.progress import Progress
from submissions.jobs.records import Job, stop_key
from submissions.presentation import submission_path
from vskill.accounts.teams import name_of_audience
from vskill.environments import WorkerEnv


def job_href(env: WorkerEnv, job_id: str, *, may_stop: bool = False) -> str:
    """Return the address of a job's page on this server; with ``may_stop`` that from which the job can be stopped."""
    query = f"?{urlencode({'key': stop_key(env, job_id)})}" if may_stop else ""
    return f"{reverse('submissions:job', args=[job_id])}{query}"


def job_as_json(env: WorkerEnv, job: Job) -> dict[str, Any]:
    """Return what the API says about a job without its skills; it may wait for the database."""
    return {
        "id": job.id,
        "state": job.state,
        "failure": job.failure or None,
        "repoUrl": job.repo_url,
        "commitSha": job.commit_sha,
        "sourceRef": job.ref or None,
        "audience": name_of_audience(env, job.audience) if job.audience else None,
        "total": job.total,
        "statusUrl": f"{env.public_url}{job_href(env, job.id)}",
        "apiUrl": f"{env.public_url}{reverse('submissions:api-job', args=[job.id])}",
        "createdAt": job.created_at,
        "updatedAt": job.updated_at,
    }


def started_as_json(env: WorkerEnv, job: Job) -> dict[str, Any]:
    """Return what the API answers to whoever started a job: the job, and the key that stops it; it may wait."""
    return {**job_as_json(env, job), "job": job.id, "stopKey": stop_key(env, job.id)}


def progress_as_json(env: WorkerEnv, job: Job, progress: Progress, cursor: str | None = None) -> dict[str, Any]:
    """Return what the API says about a job, its progress and one page of its skills; it may wait.

    ``cursor`` is that of the next page, ``None`` where there is none.
    """
    return {
        **job_as_json(env, job),
        "handled": progress.handled,
        "finished": progress.finished,
        "outcomes": progress.outcomes,
        "standings": progress.standings,
        "skills": [
            {
                "skillPath": line.skill.skill.path,
                "skillName": line.skill.skill.name,
                "outcome": line.skill.outcome or None,
                "reason": line.skill.reason or None,
                "submissionId": line.skill.submission_id or None,
                "state": line.state,
                "statusUrl": (
                    f"{env.public_url}{submission_path(line.skill.submission_id)}" if line.skill.submission_id else None
                ),
            }
            for line in progress.lines
        ],
        "nextCursor": cursor,
    }
