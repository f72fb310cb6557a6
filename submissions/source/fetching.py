"""Fetch repositories under the policy of an environment, into scratch folders that are removed afterwards."""

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
from submissions.source.logins import Login
from submissions.source.proxies import Proxy
from submissions.source.ssh import SshKey
from submissions.source.urls import RepositoryURL, SourcePolicy, normalise_repository_url
from submissions.source.wanted import Wanted
from vskill.environments import WorkerEnv, all_environments
from vskill.fair_slots import FairSlots
from vskill.work_limits import hold_slot

# Seconds. No run takes this long, so an older folder was left behind by a killed process.
ABANDONED_AFTER: Final = 3600.0

_slots_of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, FairSlots] = WeakKeyDictionary()


def source_policy(env: WorkerEnv) -> SourcePolicy:
    """Return the policy that says where repositories of ``env`` may come from."""
    policy = env.policy
    return SourcePolicy(
        file_roots=tuple(Path(root) for root in policy.source_file_roots),
        private_hosts=frozenset(policy.source_private_hosts),
        rewrites=policy.source_rewrites,
        ca_file=Path(policy.source_ca_file) if policy.source_ca_file else None,
        logins=tuple(Login(one.place, one.user, env.secret(one.secret)) for one in policy.source_credentials),
        ssh_keys=tuple(
            SshKey(one.place, one.key_file, one.known_hosts_file, one.user, one.port) for one in policy.source_ssh_keys
        ),
        proxy=Proxy(policy.source_proxy, env.secrets.get("source_proxy", "")) if policy.source_proxy else None,
        unproxied=frozenset(policy.source_unproxied_hosts),
    )


def repository_url(env: WorkerEnv, text: str) -> RepositoryURL:
    """Return the repository that ``text`` names under the policy of ``env``; raises InvalidRepositoryURL."""
    return normalise_repository_url(text, source_policy(env))


@asynccontextmanager
async def scratch_folder() -> AsyncIterator[Path]:
    """Yield an empty folder below the data directory; it is removed with its contents when the block ends."""
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
    """Remove the scratch folders that have not been modified for ``older_than`` seconds, and return how many.

    They were left behind by killed processes.
    """
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


def fetch_slots() -> FairSlots:
    """Return the ``FETCH_PROCESSES`` slots for fetches of the running event loop.

    A slow host slows its own: one host holds at most half of them, a second one a part of what is left, and so on, so
    that another finds a slot at once. One of several environments holds at most all but one.
    """
    loop = asyncio.get_running_loop()
    slots = _slots_of_loop.get(loop)
    if slots is None:
        places = settings.FETCH_PROCESSES
        of_environment = max(1, places - 1) if len(all_environments()) > 1 else places
        slots = _slots_of_loop[loop] = FairSlots(places, most=(of_environment,), spares=1)
    return slots


@asynccontextmanager
async def fetch_slot(env: WorkerEnv, repository: RepositoryURL, *, patient: bool) -> AsyncIterator[None]:
    """Hold a slot for a fetch of ``repository`` during the body; ``patient`` is that of ``fetch``."""
    path = (env.name, repository.host, repository.owner)
    async with AsyncExitStack() as held:
        try:
            async with asyncio.timeout(None if patient else settings.FETCH_SECONDS):
                await held.enter_async_context(hold_slot(fetch_slots(), *path))
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
    find_ref: bool = False,
    wanted: Wanted | None = None,
    patient: bool = False,
) -> Snapshot:
    """Fetch the newest commit of ``repository``, or exactly ``commit_sha``, into the empty folder ``directory``.

    ``find_ref`` and ``wanted`` are those of ``fetch_snapshot``. The policy is that of ``env``, and the fetch itself may
    take ``FETCH_SECONDS``. It waits for one of the ``fetch_slots`` first. Without ``patient``, for a request that
    somebody is waiting for, it waits ``FETCH_SECONDS`` and then raises FetchTimedOut. With ``patient``, it waits
    without a limit, because a busy process is no failure of this repository. Raises the other errors of
    ``fetch_snapshot`` as well.
    """
    async with fetch_slot(env, repository, patient=patient):
        return await fetch_snapshot(
            repository,
            directory=directory,
            policy=source_policy(env),
            limits=FetchLimits(seconds=settings.FETCH_SECONDS),
            commit_sha=commit_sha,
            find_ref=find_ref,
            wanted=wanted,
        )
