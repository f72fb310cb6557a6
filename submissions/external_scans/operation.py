"""What an operator does with a published submission: ask the scanners outside this registry about it."""

from __future__ import annotations

from typing import Final

from django.db import transaction

from marketplace.catalog import find_skill_sync, find_version_sync
from marketplace.models import HistoryEvent
from submissions.external_scans.errors import NothingToScan
from submissions.external_scans.store import request_scan, scanners_of
from submissions.operations import Operation
from submissions.states import State
from submissions.store.queries import read_submission
from submissions.store.records import Submission
from vskill.environments import WorkerEnv


def ask_about(env: WorkerEnv, submission_id: str, *, actor: str, reason: str) -> Submission:
    """Ask every external scanner of ``env`` about what a submission published; the next run sends it.

    ``actor`` and ``reason`` go into the history of the skill. Raises NothingToScan where ``submission_id`` published
    nothing that is still offered, and TooManyScans; then nothing was asked.
    """
    submission = read_submission(env, submission_id)
    skill = find_skill_sync(env, submission.text("slug")) if submission.state is State.PUBLISHED else None
    version = find_version_sync(env, skill, submission.text("version")) if skill is not None else None
    if skill is None or version is None or not scanners_of(env):
        raise NothingToScan("It is not published, or this environment has no external scanner. Nothing was asked.")
    with transaction.atomic(using=env.database):
        for provider in sorted(scanners_of(env)):
            request_scan(env, version, provider, by=actor)
        HistoryEvent.objects.using(env.database).create(
            namespace=env.name,
            subject=skill.key,
            skill=skill,
            action="asked other engines",
            version=version.version,
            actor=actor,
            reason=reason,
        )
    return submission


ASK_OUTSIDE: Final = Operation(
    "ask_outside",
    "Ask other engines",
    "The scanners outside this registry are asked about what was published. Their opinion is shown on its page.",
    ask_about,
)
