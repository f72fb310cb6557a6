"""Names of workers from which another process on the same machine can tell whether a worker has ended.

A lease brings a message back wherever its worker ran. For a worker on this machine the kernel knows at once that the
process is gone, and its messages need not wait for the end of the lease.
"""

from __future__ import annotations

import hashlib
import os
import socket
from functools import cache
from pathlib import Path
from typing import Final

from vskill.processes.heartbeat import process_name

LONGEST_HOST: Final = 50


@cache
def _machine() -> str:
    """Return an id that is equal for processes that see one another under the same process ids.

    That is a boot of a machine and the process and time namespaces within it. Empty where the system does not say.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespaces = [str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in ("pid", "time")]
    except OSError:
        return ""
    # The host as well, because machines that were cloned while running share a boot id.
    return hashlib.sha256(" ".join([socket.gethostname(), boot, *namespaces]).encode()).hexdigest()[:12]


def _started_at(pid: int) -> str | None:
    """Return when a process started, in clock ticks since the boot.

    ``None`` for a process that has ended, empty for one that nothing can be learnt about.
    """
    try:
        # Not by /proc alone, which may be mounted with hidepid and then hides other users' processes.
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    try:
        # Fields after the command name, which may contain anything: the first is the state, the twentieth the start.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return None if fields[0] in ("Z", "X") else fields[19]


def worker_name() -> str:
    """Return the name of this process as a worker: host, process id, and what tells it from a later process of that
    id."""
    machine, started_at = _machine(), _started_at(os.getpid())
    # The column holds 100 characters, and the distinguishing part is at the end.
    host, _colon, pid = process_name().rpartition(":")
    name = f"{host[:LONGEST_HOST]}:{pid}"
    return f"{name}@{machine}.{started_at}" if machine and started_at else name


def has_ended(worker: str) -> bool:
    """Return whether a worker was a process of this machine and has ended; False where that is unknown."""
    name, _at, life = worker.rpartition("@")
    machine, _dot, started_at = life.partition(".")
    pid = name.rpartition(":")[2]
    if not machine or machine != _machine() or not pid.isdecimal() or not started_at.isdecimal():
        return False
    present = _started_at(int(pid))
    return present is None or present not in ("", started_at)
