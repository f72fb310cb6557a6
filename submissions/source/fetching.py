"""From the policy of an environment to a fetched snapshot in a folder that goes away."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

from asgiref.sync import sync_to_async
from django.conf import settings

from submissions.source.errors import FetchTimedOut
from submissions.source.git import Snapshot, fetch_snapshot
from submissions.source.git_process import FetchLimits
from submissions.source.urls import RepositoryURL, SourcePolicy, normalise_repository_url
from vskill.environments import WorkerEnv
from vskill.work_limits import place

# No run may take this long: what is older was left behind by a process that was killed.
ABANDONED_AFTER: Final = 3600.0

_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def source_policy(env: WorkerEnv) -> SourcePolicy:
    """Return where repositories of ``env`` may come from."""
    policy = env.policy
    return SourcePolicy(
        file_roots=tuple(Path(root) for root in policy.source_file_roots),
        private_hosts=frozenset(policy.source_private_hosts),
        rewrites=policy.source_rewrites,
        ca_file=Path(policy.source_ca_file) if policy.source_ca_file else None,
    )


def repository_url(env: WorkerEnv, text: str) -> RepositoryURL:
    """Return the repository that ``text`` names under the policy of ``env``; raise ``InvalidRepositoryURL``."""
    return normalise_repository_url(text, source_policy(env))


@asynccontextmanager
async def scratch_folder() -> AsyncIterator[Path]:
    """Give an empty folder below the data directory and remove it, with all that was put there, whatever happens."""
    parent = _scratch()
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=parent))
    try:
        yield folder
    finally:
        await sync_to_async(shutil.rmtree, thread_sensitive=False)(folder, ignore_errors=True)


def _scratch() -> Path:
    return Path(settings.DATA_DIR) / "work"


def remove_abandoned_scratch(older_than: float = ABANDONED_AFTER) -> int:
    """Remove the scratch folders that killed processes left behind, untouched for ``older_than`` seconds; return how
    many."""
    removed = 0
    for folder in _scratch().glob("*"):
        try:
            abandoned = time.time() - folder.stat().st_mtime > older_than
        except FileNotFoundError:
            continue
        if abandoned:
            shutil.rmtree(folder, ignore_errors=True)
            removed += 1
    return removed


@asynccontextmanager
async def _slot(*, patient: bool) -> AsyncIterator[None]:
    """Hold one of the places for fetches that this process has."""
    loop = asyncio.get_running_loop()
    slots = _slots.get(loop)
    if slots is None:
        slots = _slots[loop] = asyncio.Semaphore(settings.FETCH_PROCESSES)
    async with AsyncExitStack() as held:
        try:
            async with asyncio.timeout(None if patient else settings.FETCH_SECONDS):
                await held.enter_async_context(place(slots))
        except TimeoutError:
            raise FetchTimedOut(
                "Many repositories are being fetched at this moment. Please try again in a minute."
            ) from None
        yield


async def fetch(
    env: WorkerEnv,
    repository: RepositoryURL,
    directory: Path,
    *,
    commit_sha: str | None = None,
    patient: bool = False,
) -> Snapshot:
    """Fetch the newest commit of ``repository``, or exactly ``commit_sha``, into ``directory`` under the settings'
    limits.

    A process has ``FETCH_PROCESSES`` fetches under way at once; the others wait. A person who waits for the answer is
    told after ``FETCH_SECONDS`` that there was no place (``FetchTimedOut``); who is ``patient`` waits for one, because
    that others were first is no failure of this repository.
    """
    async with _slot(patient=patient):
        return await fetch_snapshot(
            repository,
            directory=directory,
            policy=source_policy(env),
            limits=FetchLimits(seconds=settings.FETCH_SECONDS),
            commit_sha=commit_sha,
        )
