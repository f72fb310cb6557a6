"""Set the limits of this process, then replace it by the requested program.

``child_processes.run_child`` starts it as ``python -I -S limited_exec.py SETTING... -- PROGRAM ARGUMENT...`` with
settings of the form ``name=number``. A launcher is used instead of a ``preexec_fn`` because code between fork and exec
is unsafe in a process that has threads. It imports little, because every child pays for its start.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000


def main() -> None:
    """Apply the settings on the command line, then execute the program."""
    split = sys.argv.index("--")
    settings = {name: int(value) for name, _, value in (word.partition("=") for word in sys.argv[1:split])}
    program = sys.argv[split + 1 :]
    if sys.platform == "linux":
        _tie_to_parent(settings["parent"])
        if not settings["network"]:
            _leave_the_network()
    # A core file of a hostile child could fill the disk.
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, settings.get("open_files"))
    _limit(resource.RLIMIT_FSIZE, settings.get("file_bytes"))
    # At the hard limit the kernel sends SIGKILL; at the soft limit, one second earlier, SIGXCPU, which names the cause.
    _limit(resource.RLIMIT_CPU, settings.get("cpu_seconds"), grace=1)
    # The interpreter ignores SIGPIPE, and exec keeps ignored signals ignored. SIGXFSZ stays ignored on purpose: a
    # program then gets an error for a file that is too large, and can report it.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.umask(0o022)
    # Last, so that nothing before it fails for lack of memory.
    _limit(resource.RLIMIT_AS, settings.get("address_space"))
    os.execv(program[0], program)  # noqa: S606 - the program is an absolute path chosen by our own code


def _limit(which: int, value: int | None, grace: int = 0) -> None:
    if value is None:
        return
    hard = resource.getrlimit(which)[1]
    highest = value + grace if hard == resource.RLIM_INFINITY else min(value + grace, hard)
    resource.setrlimit(which, (min(value, highest), highest))


def _tie_to_parent(parent: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.getppid() != parent:
        # The parent died before prctl, so its death will send no signal.
        os._exit(125)


def _leave_the_network() -> None:
    """Try to move into an empty network namespace, through a user namespace where privileges are missing."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWNET) == 0:
        return
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
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


main()
