"""Look at one repository: whether it answers, and how old its newest commit is."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from marketplace.repo_health import Health
from marketplace.skills.sources import skills_of_repository
from submissions.discovery import gone_folders
from submissions.source.errors import (
    FetchFailed,
    FetchTimedOut,
    RepositoryNotFound,
    RepositoryRefused,
    SourceError,
)
from submissions.source.fetching import fetch, repository_url, scratch_folder
from submissions.source.git import Snapshot
from submissions.source.wanted import Wanted
from vskill.environments import WorkerEnv
from vskill.kv.threads import readers

# A repository that is there answers sooner; the next look is soon.
LOOK_SECONDS: Final = 20.0
_COMMITTED: Final = re.compile(rb"^committer [^\n]*> (\d{1,12}) [+-]\d{4}$", re.MULTILINE)
_HEADER_BYTES: Final = 64 * 1024


@dataclass(frozen=True)
class Seen:
    """What one look at a repository saw.

    ``status`` is ONLINE for whatever answers with a commit; how old that is decides later. ``host_fails`` says that the
    host itself did not answer, so that its other repositories need not be tried now.
    """

    status: Health
    reason: str = ""
    commit_sha: str = ""
    committed_at: datetime | None = None
    host_fails: bool = False


async def look_at(env: WorkerEnv, url: str) -> Seen:
    """Return what the repository at a normalised URL shows, by a fetch under the policy and the limits of submissions.

    Only the commit and its trees are fetched. On the way, published skills whose folders it no longer has are marked,
    as each submission does. OFFLINE is what the host itself says; a time-out, a failure of the host or of its name, a
    refusal and a limit of requests are UNKNOWN. Raises MachineFault where this machine cannot run git.
    """
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            return await _look(env, url)
    except TimeoutError:
        return Seen(Health.UNKNOWN, f"It did not answer within {LOOK_SECONDS:g} seconds.", host_fails=True)
    except RepositoryRefused:
        return Seen(Health.UNKNOWN, "Its host refuses this server: it is private, or was asked too often.")
    except RepositoryNotFound:
        return Seen(Health.OFFLINE, "Its host says that there is no such repository, or that it is private.")
    except SourceError as error:
        return Seen(Health.UNKNOWN, str(error), host_fails=isinstance(error, (FetchFailed, FetchTimedOut)))


async def _look(env: WorkerEnv, url: str) -> Seen:
    repository = repository_url(env, url)
    known = await readers.run(skills_of_repository, env, repository.url)
    async with scratch_folder() as scratch:
        snapshot = await fetch(env, repository, scratch, wanted=Wanted(choose=lambda _entries: ()), patient=True)
        await gone_folders(env, known, snapshot, note=True)
        return Seen(Health.ONLINE, commit_sha=snapshot.commit_sha, committed_at=await _committed_at(snapshot))


async def _committed_at(snapshot: Snapshot) -> datetime | None:
    """Return when the commit was made, as it says itself, or ``None`` where it says nothing that is a time."""
    result = await snapshot.sandbox.read(
        "cat-file", "commit", snapshot.commit_sha, limits=snapshot.limits.for_child(_HEADER_BYTES)
    )
    # A message may be longer than the limit; what is needed comes before it.
    header, _, _message = result.stdout.partition(b"\n\n")
    match = _COMMITTED.search(header)
    try:
        return datetime.fromtimestamp(int(match[1]), UTC) if match else None
    except (ValueError, OverflowError, OSError):
        return None
