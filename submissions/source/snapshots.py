"""Share what was fetched of one commit among the submissions that name it, in all processes of a machine.

Each environment has snapshots of its own. A snapshot is a folder below the data directory with two lock files. Who
reads it holds the first together with others; who removes it has to have that alone. Who fetches into it has the second
alone. The kernel frees both when their process ends, however that happens. Objects are named by the hash of their
content and never removed from a snapshot, so that nobody who reads sees another commit because somebody else fetches.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from submissions.source.errors import RepositoryTooLarge, SourceError
from submissions.source.fetching import fetch_slot, source_policy
from submissions.source.folder_locks import IN_USE, NotShareable, held_alone, held_for_removal, held_together
from submissions.source.git import Snapshot, complete, fetch_snapshot
from submissions.source.git_process import FetchLimits, reopen_sandbox
from submissions.source.origin import Origin
from submissions.source.urls import RepositoryURL
from submissions.source.wanted import NarrowFetchRefused, Wanted
from vskill.environments import WorkerEnv

logger = logging.getLogger(__name__)

# After this time without use, in seconds, a snapshot is removed; its submissions have long been worked off, or wait.
KEPT_SECONDS: Final = 900.0
# The least recently used snapshots go beyond this.
KEPT_BYTES: Final = 2 * 1024**3
_FETCHING: Final = "fetching"
_REMOVED: Final = "removed-"
_DESCRIPTION: Final = "snapshot.json"


@dataclass(frozen=True)
class Asked:
    """What is asked for of one commit.

    ``find_ref`` is that of ``fetch_snapshot``. ``wanted`` chooses the files. ``also`` is called before each fetch, and
    returns what to fetch together with them, because others will ask for it.
    """

    repository: RepositoryURL
    commit_sha: str
    wanted: Wanted
    also: Callable[[], Awaitable[Wanted]]
    find_ref: bool = False


@asynccontextmanager
async def shared_snapshot(env: WorkerEnv, asked: Asked) -> AsyncIterator[Snapshot]:
    """Yield the snapshot of a commit with the files that are ``asked`` for; it can be read until the block ends.

    What is missing is fetched under the policy of ``env``, once for all who ask at the same time. Raises the errors of
    ``fetch``.
    """
    folder = _root() / env.name / _key(env, asked)
    async with AsyncExitStack() as leaving:
        try:
            await leaving.enter_async_context(held_together(folder))
        except NotShareable as error:
            logger.warning("%s is fetched for one submission alone: %s", asked.repository.url, error)
            yield await _fetch_apart(env, asked, folder, leaving)
        else:
            yield await _ready(env, asked, folder, leaving)


async def _ready(env: WorkerEnv, asked: Asked, folder: Path, leaving: AsyncExitStack) -> Snapshot:
    known = await _opened(env, folder)
    if known is not None and (there := await complete(known, asked.wanted, may_fetch=False)) is not None:
        return there
    async with held_alone(folder / _FETCHING):
        # Again: whoever held the lock before may have fetched it.
        known = await _opened(env, folder)
        if known is None:
            known = await _first_fetch(env, asked, folder)
        if (there := await complete(known, asked.wanted, may_fetch=False)) is not None:
            return there
        async with fetch_slot(env, asked.repository, patient=True):
            await _bring_with_others(known, asked)
            try:
                there = await complete(known, asked.wanted, may_fetch=True)
            except NarrowFetchRefused:
                there = None
            except SourceError as error:
                if error.transient:
                    raise
                there = None
        if there is not None:
            return there
        # The snapshot has grown to the limit of one fetch, or its host gives no single files any more.
        return await _fetch_apart(env, asked, folder, leaving)


async def _bring_with_others(known: Snapshot, asked: Asked) -> None:
    """Fetch what is asked for together with what others will ask for; what fails is then fetched alone."""
    try:
        await complete(known, await asked.also(), may_fetch=True)
    except SourceError as error:
        logger.info("%s: not fetched together with others: %s", asked.repository.url, error)


async def _fetch_apart(env: WorkerEnv, asked: Asked, folder: Path, leaving: AsyncExitStack) -> Snapshot:
    apart = Path(tempfile.mkdtemp(prefix="apart-", dir=folder))
    leaving.push_async_callback(asyncio.to_thread, shutil.rmtree, apart, ignore_errors=True)
    return await _fetch(env, asked, asked.wanted, apart)


async def _first_fetch(env: WorkerEnv, asked: Asked, folder: Path) -> Snapshot:
    """Fetch the commit with all that is expected to be asked for, and describe it for others."""
    await asyncio.to_thread(_clear, folder)
    attempt = Path(tempfile.mkdtemp(prefix="fetched-", dir=folder))
    try:
        snapshot = await _fetch(env, asked, await asked.also(), attempt)
    except SourceError as error:
        if not (error.transient or isinstance(error, RepositoryTooLarge)):
            raise
        # Too much together, or one of the others' files cannot be had; what was asked for may be small and whole.
        attempt = Path(tempfile.mkdtemp(prefix="fetched-", dir=folder))
        snapshot = await _fetch(env, asked, asked.wanted, attempt)
    await asyncio.to_thread(_describe, folder, snapshot)
    await asyncio.to_thread(make_room)
    return snapshot


async def _fetch(env: WorkerEnv, asked: Asked, wanted: Wanted, directory: Path) -> Snapshot:
    async with fetch_slot(env, asked.repository, patient=True):
        return await fetch_snapshot(
            asked.repository,
            directory=directory,
            policy=source_policy(env),
            limits=_limits(),
            commit_sha=asked.commit_sha,
            find_ref=asked.find_ref,
            wanted=wanted,
        )


def _limits() -> FetchLimits:
    return FetchLimits(seconds=settings.FETCH_SECONDS)


def _root() -> Path:
    return Path(settings.DATA_DIR) / "snapshots"


def _key(env: WorkerEnv, asked: Asked) -> str:
    # The policy is part of it: what was fetched under one may not be allowed under the next.
    parts = [asked.repository.url, asked.commit_sha, asked.find_ref, repr(source_policy(env))]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _describe(folder: Path, snapshot: Snapshot) -> None:
    origin = snapshot.origin
    description = {
        "commit": snapshot.commit_sha,
        "directory": str(snapshot.sandbox.directory.relative_to(folder)),
        "ref": snapshot.ref,
        "origin": [origin.url, list(origin.configuration), origin.host],
    }
    # Replaced as a whole: readers ask for it without the lock.
    written = folder / f"{_DESCRIPTION}.written"
    written.write_text(json.dumps(description), encoding="utf-8")
    written.replace(folder / _DESCRIPTION)


async def _opened(env: WorkerEnv, folder: Path) -> Snapshot | None:
    """Return the snapshot that is described in ``folder``, without entries, or ``None`` where there is none yet."""
    try:
        described: dict[str, Any] = json.loads(await asyncio.to_thread((folder / _DESCRIPTION).read_text, "utf-8"))
    except FileNotFoundError:
        return None
    sandbox = await reopen_sandbox(folder / described["directory"])
    url, configuration, host = described["origin"]
    origin = Origin.under(source_policy(env), url, [(name, value) for name, value in configuration], host)
    return Snapshot(described["commit"], sandbox.git_dir, (), sandbox, _limits(), origin, described["ref"])


def _clear(folder: Path) -> None:
    """Remove what a fetch left behind that was killed or failed."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)


def make_room(kept_seconds: float = KEPT_SECONDS, kept_bytes: int = KEPT_BYTES) -> int:
    """Remove snapshots that nobody uses, and return how many.

    Those go that were not used for ``kept_seconds``, and the least recently used while all are more than
    ``kept_bytes``.
    """
    # Left behind by a process that was killed while it removed them.
    for folder in _root().glob(f"*/{_REMOVED}*"):
        shutil.rmtree(folder, ignore_errors=True)
    found = sorted(_unused_for(), reverse=True)
    kept = sum(size for _age, size, _folder in found)
    removed = 0
    for age, size, folder in found:
        if age > kept_seconds or kept > kept_bytes:
            if _remove(folder):
                removed += 1
                kept -= size
        else:
            break
    return removed


def _unused_for() -> Iterator[tuple[float, int, Path]]:
    """Yield for each snapshot the seconds since its last use, its bytes and its folder."""
    now = time.time()
    for folder in _root().glob("*/*"):
        try:
            used_at = (folder / IN_USE).stat().st_mtime
        except (FileNotFoundError, NotADirectoryError):
            continue
        yield now - used_at, _bytes_of(folder), folder


def _bytes_of(folder: Path) -> int:
    total = 0
    for parent, _folders, names in os.walk(folder):
        for name in names:
            try:
                total += Path(parent, name).lstat().st_size
            except FileNotFoundError:
                continue
    return total


def _remove(folder: Path) -> bool:
    with held_for_removal(folder) as alone:
        if alone:
            # Under another name first, so that nobody finds a half of it.
            removed = Path(tempfile.mkdtemp(prefix=_REMOVED, dir=folder.parent))
            folder.replace(removed)
            shutil.rmtree(removed, ignore_errors=True)
        return alone
