"""Submit what a followed repository has at a new commit, through the intake, each content once.

A skill is submitted where its newest submission, however that ended, has other content. That is looked up in the
transaction that accepts it, so that a run which was killed is repeated and submits nothing twice.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import Final

from django.db import transaction

from marketplace.skills.publishers import skill_identity
from submissions.discovery import DiscoveredSkill, Discovery, NoSkillFound, discover_repository
from submissions.following.store import ACTOR
from submissions.intake import Accepted, IntakeBusy, Outcome, accept_one, is_offered
from submissions.jobs.work import AT_ONCE, PRIORITY, start_job
from submissions.models import SubmissionEntry
from submissions.source.errors import SourceError
from submissions.source.fetching import repository_url
from submissions.source.places import Place
from submissions.states import LIVE_STATES, State
from submissions.store.queries import live_submission, read_submission
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.errors import EntryUnavailable, VersionConflict
from vskill.kv.threads import readers, writers

logger = logging.getLogger(__name__)

SOURCE: Final = "follow"


@dataclass
class Submitted:
    """What became of one commit: how many skills were submitted, by a job where they are many, and were refused.

    ``waits`` are the identities of skills that have another submission on its way or held: they were left for later.
    ``problem`` says why nothing of it can be read.
    """

    commit_sha: str = ""
    created: int = 0
    refused: int = 0
    waits: list[str] = field(default_factory=list)
    job: Discovery | None = None
    picked: list[DiscoveredSkill] = field(default_factory=list)
    problem: str = ""


async def submit_commit(env: WorkerEnv, repo_url: str, ref: str) -> Submitted:
    """Submit the skills at the newest commit of ``ref`` whose content is not that of their newest submission.

    ``ref`` is ``HEAD`` or a full name. More than ``AT_ONCE`` are not submitted here: ``job`` and ``picked`` are then
    for ``start_job``. Raises a SourceError that a later attempt may mend, and what the database raises.
    """
    plain = repository_url(env, repo_url)
    repository = plain if ref == "HEAD" else replace(plain, places=(Place(ref),))
    try:
        discovery = await discover_repository(env, repository)
    except NoSkillFound as error:
        return Submitted(problem=str(error))
    except SourceError as error:
        if error.transient:
            raise
        return Submitted(problem=str(error))
    done = Submitted(discovery.commit_sha)
    await readers.run(_pick, env, discovery, done)
    if len(done.picked) > AT_ONCE:
        done.job = discovery
        return done
    for skill in done.picked:
        await writers.run(_submit, env, discovery, skill, done)
    return done


def start_following_job(env: WorkerEnv, done: Submitted) -> None:
    """Start the job of a commit with many new skills, in the caller's transaction."""
    if done.job is not None:
        start_job(env, done.job, source=SOURCE, actor=ACTOR, audience=None, picked=done.picked)


def still_wait(env: WorkerEnv, identities: tuple[str, ...]) -> bool:
    """Tell whether a submission of one of these skills is still on its way or held."""
    return any(live_submission(env, identity) is not None for identity in identities)


def _pick(env: WorkerEnv, discovery: Discovery, done: Submitted) -> None:
    for skill in discovery.skills:
        if skill.problems or not is_offered(discovery, skill):
            continue
        standing = _standing(env, discovery, skill)
        if standing is None:
            done.picked.append(skill)
        elif standing:
            done.waits.append(standing)


def _standing(env: WorkerEnv, discovery: Discovery, skill: DiscoveredSkill) -> str | None:
    """Return ``None`` for a skill to submit, '' for content that was submitted, and the identity of one that waits."""
    identity = skill_identity(discovery.repo_url, skill.path)
    rows = SubmissionEntry.objects.using(env.database).live().filter(namespace=env.name, identity=identity)
    newest = rows.order_by("-submitted_at", "-id").only("key", "state").first()
    if newest is None:
        return None
    if read_submission(env, newest.submission_id).text("sourceDigest") == skill.source_digest:
        return ""
    return identity if State(newest.state) in LIVE_STATES else None


def _submit(env: WorkerEnv, discovery: Discovery, skill: DiscoveredSkill, done: Submitted) -> None:
    identity = skill_identity(discovery.repo_url, skill.path)
    try:
        with transaction.atomic(using=env.database):
            standing = _standing(env, discovery, skill)
            if standing is not None:
                done.waits += [standing] if standing else []
                return
            answer: Accepted = accept_one(
                env, discovery, skill, source=SOURCE, actor=ACTOR, audience=None, priority=PRIORITY
            )
    except IntakeBusy:
        done.waits.append(identity)
        return
    except (EntryUnavailable, VersionConflict):
        raise
    except VskillError as error:
        # One skill whose entry cannot be read does not keep the others out.
        logger.warning("%s of %s was not submitted: %s", skill.path or ".", discovery.repo_url, error)
        done.refused += 1
        return
    if answer.outcome is Outcome.DUPLICATE:
        done.waits.append(identity)
    elif answer.outcome is Outcome.CREATED:
        done.created += 1
    else:
        done.refused += 1
