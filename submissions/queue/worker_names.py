"""Names of workers that tell, on the same machine, whether the process behind one has ended.

A lease is what brings a message back wherever its worker was. Where the worker was a process beside us, the kernel
knows at once that it is gone, and nobody has to wait for the lease.
"""

from __future__ import annotations

import hashlib
import os
import socket
from functools import cache
from pathlib import Path
from typing import Final

from vskill.heartbeat import process_name

LONGEST_HOST: Final = 50


@cache
def _machine() -> str:
    """Return what processes share that see one another under the same ids: a boot, and the namespaces in it.

    Empty where the system does not tell; nothing is said about its processes then.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespaces = [str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in ("pid", "time")]
    except OSError:
        return ""
    # The host as well, because machines that were cloned as they ran share their boot.
    return hashlib.sha256(" ".join([socket.gethostname(), boot, *namespaces]).encode()).hexdigest()[:12]


def _started_at(pid: int) -> str | None:
    """Return when a process started, in ticks since the boot; ``None`` for one that has ended, empty for one that
    nothing can be learnt about."""
    try:
        # Not by /proc alone: it may be mounted so that it hides the processes of other users.
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    try:
        # After the name, which may hold anything: state is the first field, and the start the twentieth.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return None if fields[0] in ("Z", "X") else fields[19]


def worker_name() -> str:
    """Return the name of this process as a worker: host and process id, and what tells it from others of that id."""
    machine, started_at = _machine(), _started_at(os.getpid())
    # The column is short, and what tells workers apart is at the end.
    host, _colon, pid = process_name().rpartition(":")
    name = f"{host[:LONGEST_HOST]}:{pid}"
    return f"{name}@{machine}.{started_at}" if machine and started_at else name


def has_ended(worker: str) -> bool:
    """Return whether a worker was a process of this machine and has ended; False wherever that cannot be told."""
    name, _at, life = worker.rpartition("@")
    machine, _dot, started_at = life.partition(".")
    pid = name.rpartition(":")[2]
    if not machine or machine != _machine() or not pid.isdecimal() or not started_at.isdecimal():
        return False
    present = _started_at(int(pid))
    return present is None or present not in ("", started_at)
