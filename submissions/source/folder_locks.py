"""Locks by which processes of one machine use a folder together, change it alone, and remove it when none uses it.

They are the kernel's, on files, so that they end with the process that holds them, however it ends.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import IO, Final

IN_USE: Final = "in-use"
# How often a lock that another process holds is asked for again, in seconds.
_PAUSE: Final = 0.02


class NotShareable(Exception):
    """The data directory is on a file system without locks."""


@asynccontextmanager
async def held_alone(path: Path) -> AsyncIterator[None]:
    """Hold the lock of a file, alone, during the body."""
    with path.open("a") as file:
        # Another process may hold it, and the kernel has no event for that.
        while not _locked(file, fcntl.LOCK_EX):  # noqa: ASYNC110
            await asyncio.sleep(_PAUSE)
        yield


@asynccontextmanager
async def held_together(folder: Path) -> AsyncIterator[None]:
    """Hold the lock against removal of ``folder``, which is made where it is missing, during the body."""
    while True:
        with _lock_file(folder) as file:
            if file is not None and _locked(file, fcntl.LOCK_SH) and _is_still(file, folder):
                os.utime(file.fileno())
                yield
                return
        await asyncio.sleep(_PAUSE)


@contextmanager
def _lock_file(folder: Path) -> Iterator[IO[str] | None]:
    """Yield the open lock file of ``folder``, or ``None`` where that was removed between two steps."""
    # Not exist_ok: pathlib looks a second time then, and fails where the folder was removed in between.
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
    try:
        file = (folder / IN_USE).open("a")
    except FileNotFoundError:
        yield None
        return
    with file:
        yield file


def _locked(file: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise NotShareable(f"{file.name} cannot be locked: {error.strerror}.") from error
    return True


def _is_still(file: IO[str], folder: Path) -> bool:
    """Tell whether an open lock file is that of ``folder``, and not of one that was removed before it was locked."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), (folder / IN_USE).stat())
    except FileNotFoundError:
        return False


@contextmanager
def held_for_removal(folder: Path) -> Iterator[bool]:
    """Hold the lock against use during the body; yield False where somebody uses the folder, or it is gone."""
    try:
        file = (folder / IN_USE).open("a")
    except (FileNotFoundError, NotADirectoryError):
        yield False
        return
    with file:
        yield _locked(file, fcntl.LOCK_EX) and _is_still(file, folder)
