"""Keep what a run of the tests writes in memory, where the machine has room for it.

Tests make thousands of folders, repositories and databases, and what they start as an installation waits for the disk
at each commit. All of it is deleted at the end, so only time is lost with it: a third of that of tests that use git.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from unittest.mock import patch

# Linux keeps its files in memory.
IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - the folders in it are made under a name that nobody knows before
# Bytes. A run of all tests takes a fraction of it.
ROOM: Final = 3 * 2**30
_MEMINFO: Final = Path("/proc/meminfo")


@contextmanager
def temporary_files() -> Iterator[None]:
    """Let this process and those that it starts make temporary files in memory, and delete them after the body.

    Whoever sets ``TMPDIR`` has chosen a place, which is left as it is.
    """
    if "TMPDIR" in os.environ or not has_room(IN_MEMORY):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="vskill-", dir=IN_MEMORY) as folder:
        # As in the usual place: the server of PostgreSQL runs under an account of its own.
        Path(folder).chmod(0o1777)
        with patch.dict(os.environ, TMPDIR=folder), patch.object(tempfile, "tempdir", folder):
            yield


def has_room(folder: Path) -> bool:
    """Return whether temporary files may be kept in ``folder``: programs among them run, and memory is left."""
    try:
        found = os.statvfs(folder)
        free = _available_memory()
    except OSError:
        return False
    usable = os.access(folder, os.W_OK | os.X_OK) and not found.f_flag & os.ST_NOEXEC
    # The processes of the tests want memory as well.
    return usable and found.f_bavail * found.f_frsize >= ROOM and free >= 2 * ROOM


def _available_memory() -> int:
    lines = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines())
    return int(lines.get("MemAvailable", "0 kB").split()[0]) * 1024
