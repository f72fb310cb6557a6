"""Faults of this machine: a full disk, or no more descriptors, memory, processes or threads.

No piece of work is to blame for them. It is given back uncounted, and the process takes nothing until a probe passes.
"""

from __future__ import annotations

import asyncio
import errno
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from vskill.errors import VskillError

_ERRNOS: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}
)
# SQLite's own names of a full disk, a file that cannot be opened and memory that is used up.
_SQLITE_CODES: Final = frozenset({"SQLITE_FULL", "SQLITE_CANTOPEN", "SQLITE_NOMEM"})
# The same in words, as an error of ours quotes them that was made of an outcome and has no cause.
_SQLITE_SAYS: Final = ("unable to open database file", "database or disk is full")
# What a child says of the machine, as against its own limits.
_CHILD_SAYS: Final = (
    "No space left on device",
    "Disk quota exceeded",
    "Read-only file system",
    "Too many open files in system",
)
_PROBE_BYTES: Final = 1024 * 1024
_PROBE_DESCRIPTORS: Final = 16


class MachineFault(VskillError):
    """This machine cannot do any work at present; what was to be done was given back and is not counted."""

    code = "machine_fault"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def machine_fault(error: BaseException | None) -> str | None:
    """Return what is wrong with this machine if ``error``, or an error that led to it, says so; else ``None``."""
    for one in _chain(error):
        if isinstance(one, MachineFault):
            return str(one)
        if isinstance(one, MemoryError):
            return "no memory is left"
        if isinstance(one, OSError) and one.errno in _ERRNOS:
            return os.strerror(one.errno)
        if isinstance(one, FileNotFoundError) and "temporary directory" in str(one):
            return "there is no temporary directory that can be written"
        if isinstance(one, RuntimeError) and "can't start new thread" in str(one):
            return "no more threads can be started"
        if getattr(one, "sqlite_errorname", "") in _SQLITE_CODES:
            return f"SQLite: {one}"
        if isinstance(one, VskillError) and any(words in str(one) for words in _SQLITE_SAYS):
            return str(one)
    return None


def fault_of_child(stderr: bytes) -> str | None:
    """Return what a child process said of the machine on its standard error, or ``None``.

    The child's own limits (memory, descriptors, size of a file) are set by us and are no fault of the machine.
    """
    # Not splitlines, which also ends lines where the text of a server could begin one of its own.
    for line in stderr.decode("utf-8", "replace").replace("\r", "\n").split("\n"):
        if line.startswith("fatal: remote error:"):
            # Git ends with it, and what a server says there may have several lines.
            return None
        # What a git server says of itself comes after "remote:".
        if not line.startswith("remote:") and any(words in line for words in _CHILD_SAYS):
            return line.strip()[:200]
    return None


def probe_machine(folder: Path) -> None:
    """Do a little of everything that work needs; raise what goes wrong.

    It writes a file below ``folder`` and in the temporary directory, opens descriptors, and starts a thread.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for directory in (folder, None):
        with tempfile.NamedTemporaryFile(dir=directory, prefix="vskill-probe-") as file:
            file.write(b"\0" * _PROBE_BYTES)
            file.flush()
            os.fsync(file.fileno())
    descriptors: list[int] = []
    try:
        descriptors += (os.open(os.devnull, os.O_RDONLY) for _ in range(_PROBE_DESCRIPTORS))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()


async def probe_children() -> None:
    """Start a child process that ends at once; raise what goes wrong."""
    child = await asyncio.create_subprocess_exec("/bin/true", stdin=asyncio.subprocess.DEVNULL)
    await child.wait()
