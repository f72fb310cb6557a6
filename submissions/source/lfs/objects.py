"""Bring the objects of one package: from beside its snapshot, from a repository on this machine, or over https."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from submissions.source.errors import FetchFailed
from submissions.source.fetching import fetch_slot, source_policy
from submissions.source.git import Snapshot
from submissions.source.lfs.local_objects import copy_object
from submissions.source.lfs.pointers import Pointer
from submissions.source.lfs.remote_objects import LfsLimits, Missing, fetch_objects
from submissions.source.ssh import over_https
from submissions.source.urls import RepositoryURL, SourcePolicy
from vskill.environments import WorkerEnv

# What is kept beside one snapshot. More is fetched by each submission that needs it.
KEPT_BYTES: Final = 256 * 1024 * 1024
_KEPT: Final = "lfs"


@dataclass(frozen=True)
class LfsSource:
    """Where the objects of one package come from, and the empty ``folder`` that they are written into.

    The ``snapshot`` of the ``repository`` is what the package is read from; ``limits`` bound the transfer. The policy
    and the slots are those of ``env``. With ``give_up``, what may arrive at a later attempt is missing; otherwise it is
    an error.
    """

    env: WorkerEnv
    snapshot: Snapshot
    repository: RepositoryURL
    folder: Path
    limits: LfsLimits
    give_up: bool = False

    async def bring(self, pointers: Collection[Pointer]) -> dict[str, str]:
        """Write the objects of ``pointers`` into the folder, and return, by id, why others are not there.

        An object is written under its id, with the size and the SHA-256 of its pointer. Raises FetchFailed where a
        later attempt may bring one that is missing.
        """
        async with fetch_slot(self.env, self.repository, patient=True):
            missing = await bring_objects(
                self.snapshot, pointers, self.folder, policy=source_policy(self.env), limits=self.limits
            )
        late = [one.reason for one in missing.values() if one.transient]
        if late and not self.give_up:
            raise FetchFailed(f"A file that is kept in Git LFS could not be fetched: {late[0]}. Try again later.")
        return {oid: one.reason for oid, one in missing.items()}


async def bring_objects(
    snapshot: Snapshot, pointers: Collection[Pointer], folder: Path, *, policy: SourcePolicy, limits: LfsLimits
) -> dict[str, Missing]:
    """Write the objects of ``pointers`` into ``folder``, each under its id, and return why others are missing.

    What was fetched stays beside the ``snapshot`` for others who read it. ``policy`` says which hosts may be contacted,
    ``limits`` bound the transfer.
    """
    kept = snapshot.sandbox.directory / _KEPT
    wanted = [*{pointer.oid: pointer for pointer in pointers}.values()]
    rest = await asyncio.to_thread(_take, kept, wanted, folder)
    fetched, spared = rest[: limits.objects], rest[limits.objects :]
    missing = {one.oid: Missing(f"a skill may have {limits.objects:,} such files") for one in spared}
    if not fetched:
        return missing
    url = snapshot.origin.url
    if snapshot.origin.transport == "file":
        missing |= await asyncio.to_thread(_copy_all, Path(unquote(urlsplit(url).path)), fetched, folder)
    else:
        missing |= await fetch_objects(over_https(url), fetched, folder, policy=policy, limits=limits)
    there = [pointer for pointer in fetched if pointer.oid not in missing]
    await asyncio.to_thread(_keep, kept, there, folder)
    return missing


def _take(kept: Path, pointers: Iterable[Pointer], folder: Path) -> list[Pointer]:
    """Copy what is kept into the folder, and return the rest."""
    rest: list[Pointer] = []
    for pointer in pointers:
        try:
            shutil.copyfile(kept / pointer.oid, folder / pointer.oid)
        except FileNotFoundError:
            rest.append(pointer)
        else:
            if not _is(pointer, folder / pointer.oid):
                (folder / pointer.oid).unlink()
                rest.append(pointer)
    return rest


def _copy_all(git_dir: Path, pointers: Iterable[Pointer], folder: Path) -> dict[str, Missing]:
    missing: dict[str, Missing] = {}
    for pointer in pointers:
        target = folder / pointer.oid
        reason = copy_object(git_dir, pointer, target)
        if reason is None and not _is(pointer, target):
            target.unlink()
            reason = "what the repository has is another file"
        if reason is not None:
            missing[pointer.oid] = Missing(reason)
    return missing


def _keep(kept: Path, pointers: Iterable[Pointer], folder: Path) -> None:
    """Put copies beside the snapshot, as far as there is room."""
    kept.mkdir(mode=0o700, exist_ok=True)
    room = KEPT_BYTES - _bytes_in(kept)
    for pointer in pointers:
        room -= pointer.size
        if room < 0:
            return
        # Under another name first: somebody may be reading what is kept.
        with tempfile.NamedTemporaryFile(dir=kept, delete=False) as file, (folder / pointer.oid).open("rb") as source:
            shutil.copyfileobj(source, file)
        Path(file.name).replace(kept / pointer.oid)


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.iterdir():
        # One that is being put there loses its first name.
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def _is(pointer: Pointer, path: Path) -> bool:
    with path.open("rb") as file:
        return path.stat().st_size == pointer.size and hashlib.file_digest(file, "sha256").hexdigest() == pointer.oid
