"""Set the limits of the calling process, which cannot raise them again.

Only the standard library is imported: the fork server runs this in every child, between fork and the work.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Mapping

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
# Loaded here and not in each child.
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def limit_this_process(limits: Mapping[str, int | None], *, parent: int) -> None:
    """Apply ``limits``, whose names are those of ``ChildLimits``, to this process and what it starts.

    On Linux it is also killed when the process ``parent``, which started it, ends; with ``network`` 0 it leaves the
    network where the kernel permits that.
    """
    if _LIBC is not None:
        _tie_to(parent)
        if not limits["network"]:
            _leave_the_network()
    # A core file of a hostile child could fill the disk.
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, limits["open_files"])
    _limit(resource.RLIMIT_FSIZE, limits["file_bytes"])
    # At the hard limit the kernel sends SIGKILL; at the soft limit, one second earlier, SIGXCPU, which names the cause.
    _limit(resource.RLIMIT_CPU, limits["cpu_seconds"], grace=1)
    # The interpreter ignores SIGPIPE, and exec keeps ignored signals ignored. SIGXFSZ stays ignored on purpose: a
    # program then gets an error for a file that is too large, and can report it.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.umask(0o022)
    # Last, so that nothing before it fails for lack of memory.
    _limit(resource.RLIMIT_AS, limits["address_space"])


def _limit(which: int, value: int | None, grace: int = 0) -> None:
    if value is None:
        return
    hard = resource.getrlimit(which)[1]
    highest = value + grace if hard == resource.RLIM_INFINITY else min(value + grace, hard)
    resource.setrlimit(which, (min(value, highest), highest))


def _tie_to(parent: int) -> None:
    assert _LIBC is not None, "called on Linux only"  # noqa: S101 - narrows a type
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.getppid() != parent:
        # The parent died before prctl, so its death will send no signal.
        os._exit(125)


def _leave_the_network() -> None:
    """Try to move into an empty network namespace, through a user namespace where privileges are missing."""
    assert _LIBC is not None, "called on Linux only"  # noqa: S101 - narrows a type
    user, group = os.getuid(), os.getgid()
    if _LIBC.unshare(_CLONE_NEWNET) == 0:
        return
    if _LIBC.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def _write(path: str, line: str) -> None:
    try:
        file = os.open(path, os.O_WRONLY)
    except OSError:
        # Without a mapping, files still open with the rights of the real user; only the displayed owner differs.
        return
    try:
        os.write(file, line.encode("ascii"))
    except OSError:
        return
    finally:
        os.close(file)
