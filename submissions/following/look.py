"""Look at one followed repository: where its branch or its tags are now, and what that means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings

from marketplace.following import Followed, FollowState
from submissions.following.changes import (
    HEAD,
    HEADS,
    MOST_TAGS,
    Seen,
    branch_seen,
    chosen,
    pattern_of,
    repository_gone,
    tags_seen,
)
from submissions.source.errors import (
    CommitNotOnBranch,
    RepositoryNotFound,
    RepositoryRefused,
    RepositoryTooLarge,
    SourceError,
)
from submissions.source.fetching import fetch_slot, repository_url, scratch_folder, source_policy
from submissions.source.git_process import FetchLimits
from submissions.source.remote_refs import RemoteRefs, remote_refs, went_on_from
from submissions.source.urls import RepositoryURL
from vskill.environments import WorkerEnv

# A host that is there answers sooner, and others wait for the run.
LOOK_SECONDS: Final = 20.0
# After that its host is asked again which branch is the default one.
DEFAULT_FOR: Final = timedelta(days=1)


async def refs_of(env: WorkerEnv, repository: RepositoryURL, pattern: str) -> RemoteRefs:
    """Return the refs of ``repository`` that fit ``pattern``; see ``remote_refs``, whose errors it raises."""
    limits = FetchLimits(seconds=min(settings.FETCH_SECONDS, LOOK_SECONDS))
    async with scratch_folder() as scratch, fetch_slot(env, repository, patient=True):
        return await remote_refs(
            repository, directory=scratch, policy=source_policy(env), limits=limits, pattern=pattern
        )


async def look(env: WorkerEnv, before: Followed, now: datetime) -> Seen:
    """Ask the host of a followed repository, and return what is then known of it, with what its history is told.

    ``now`` is by the database's clock. A failure counts in ``failures`` and keeps what was known. Raises MachineFault.
    """
    try:
        after, events = await _look(env, before, now)
    except RepositoryNotFound as error:
        if isinstance(error, RepositoryRefused):
            return _failed(before, error, now), ()
        after, events = repository_gone(before, "Its host says that there is no such repository.", now)
        return replace(after, looked_at=now, failures=before.failures + 1), events
    except SourceError as error:
        return _failed(before, error, now), ()
    return replace(after, looked_at=now, seen_at=now, failures=0), events


def _failed(before: Followed, error: SourceError, now: datetime) -> Followed:
    return replace(
        before, state=FollowState.UNREACHABLE, reason=str(error), looked_at=now, failures=before.failures + 1
    )


async def _look(env: WorkerEnv, before: Followed, now: datetime) -> Seen:
    repository = repository_url(env, before.repo_url)
    before, commits = await _commits(env, repository, before, now)
    tips = chosen(before, commits)
    if before.tags:
        if len(tips) > MOST_TAGS:
            raise RepositoryTooLarge(
                f"More than {MOST_TAGS:,} tags fit {before.tags!r}. None of them was submitted: follow fewer."
            )
        return tags_seen(before, tips, now)
    return branch_seen(before, tips, now, went_on=await _went_on(env, repository, before, tips))


async def _commits(
    env: WorkerEnv, repository: RepositoryURL, before: Followed, now: datetime
) -> tuple[Followed, Mapping[str, str]]:
    """Return what is then known of the default branch, and the refs of the repository that may be followed.

    A host that is asked for ``HEAD`` sends all refs, those of pull requests too, because git has no way to ask for it
    alone. So the branch that it named is asked for, which is one of its branches alone.
    """
    pattern = pattern_of(before)
    if pattern == HEAD and _knows_default(before, now):
        found = await refs_of(env, repository, before.default_ref)
        if before.default_ref in found.commits:
            return before, {HEAD: found.commits[before.default_ref]}
        # It has another one by now, or none.
    found = await refs_of(env, repository, pattern)
    if pattern != HEAD:
        return before, found.commits
    default = found.default if found.default.startswith(HEADS) else ""
    return replace(before, default_ref=default, default_at=now), found.commits


def _knows_default(one: Followed, now: datetime) -> bool:
    if not one.default_ref or one.default_at is None or now - one.default_at >= DEFAULT_FOR:
        return False
    # A webhook may tell of a new one.
    return one.asked_at is None or one.looked_at is None or one.asked_at < one.looked_at


async def _went_on(env: WorkerEnv, repository: RepositoryURL, before: Followed, tips: dict[str, str]) -> bool | None:
    ref = pattern_of(before)
    old = before.tips.get(ref)
    if old is None or tips.get(ref, old) == old:
        return None
    limits = FetchLimits(seconds=settings.FETCH_SECONDS)
    try:
        async with scratch_folder() as scratch, fetch_slot(env, repository, patient=True):
            return await went_on_from(repository, ref, old, directory=scratch, policy=source_policy(env), limits=limits)
    except CommitNotOnBranch:
        # Its history is too large to be told: then nobody is accused of a force-push.
        return None
