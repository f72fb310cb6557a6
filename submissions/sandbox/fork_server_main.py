"""The fork server: start a limited child for each request of the process that started this one.

A process of its own, ``python -m submissions.sandbox.fork_server_main DESCRIPTOR``, because forking is unsafe in a
process that has threads, and because a child that is forked here needs no interpreter of its own: the Python files
that children run are imported once, at the first request that names them.

A request is its length (4 bytes, big-endian), a JSON object, and four descriptors: the child's stdin, stdout and
stderr, and a socket that tells of its end. On that socket this process writes one line: ``exit STATUS MICROSECONDS`` (a
negative status is a signal; the time is what the child used of the processor), or ``error ERRNO`` where no child could
be started. When its other side is closed for writing, the child's process group is killed. When the process that asks
has ended, whatever ended it, so do all children and this process.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import json
import os
import resource
import selectors
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from submissions.sandbox.process_limits import limit_this_process

Main = Callable[[list[str]], object]

LENGTH = struct.Struct(">I")
DESCRIPTORS = 4
_FIRST_FREE = 3


class _Server:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._ended, wakeup = socket.socketpair()
        for end in (self._ended, wakeup):
            end.setblocking(False)
        self._wakeup = wakeup
        signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
        # A handler, or the signal would be ignored and wake nobody.
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._selector.register(self._ended, selectors.EVENT_READ)
        self._children: dict[int, socket.socket] = {}
        self._prepared: dict[str, Main] = {}

    def serve(self) -> None:
        """Answer requests until the process that sends them has closed its side."""
        while True:
            for key, _events in self._selector.select():
                if key.fileobj is self._control:
                    if not self._answer():
                        return
                elif key.fileobj is self._ended:
                    with contextlib.suppress(BlockingIOError):
                        while self._ended.recv(4096):
                            pass
                    self._report_ended()
                # One that ended in this round is gone already, and with it what was told to it.
                elif self._children.get(key.data) is key.fileobj:
                    self._kill(key.data)

    def close(self) -> None:
        """Kill every child with its process group."""
        for pid in self._children:
            _kill_group(pid)

    def _answer(self) -> bool:
        """Start the child of the next request; return False where there are no more requests."""
        header, descriptors, _flags, _address = socket.recv_fds(self._control, LENGTH.size, DESCRIPTORS)
        if not header:
            return False
        header += _receive(self._control, LENGTH.size - len(header))
        request = json.loads(_receive(self._control, LENGTH.unpack(header)[0]))
        telling = socket.socket(fileno=descriptors[-1])
        try:
            # In here and not in the child, so that the next child has it too.
            work = self._prepare(request["script"]) if request["script"] else None
            server = os.getpid()
            pid = os.fork()
        except OSError as error:
            _tell(telling, f"error {error.errno}\n")
            telling.close()
        else:
            if pid == 0:
                _run(request, descriptors[:-1], work, server)
            # On both sides of the fork, so that the group exists whichever comes first.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.setpgid(pid, pid)
            self._children[pid] = telling
            self._selector.register(telling, selectors.EVENT_READ, pid)
        finally:
            for descriptor in descriptors[:-1]:
                os.close(descriptor)
        return True

    def _prepare(self, script: str) -> Main:
        if script not in self._prepared:
            try:
                self._prepared[script] = _import(script)
            except Exception as error:  # noqa: BLE001 - it is the answer to this request, and the next one tries again
                return partial(_raise, error)
            gc.collect()
            # What was imported is never garbage; a child that collected it would copy the memory that it shares.
            gc.freeze()
        return self._prepared[script]

    def _kill(self, pid: int) -> None:
        self._selector.unregister(self._children[pid])
        _kill_group(pid)

    def _report_ended(self) -> None:
        for pid in list(self._children):
            if (end := _collect(pid)) is None:
                continue
            telling = self._children.pop(pid)
            with contextlib.suppress(KeyError):
                self._selector.unregister(telling)
            _tell(telling, f"exit {os.waitstatus_to_exitcode(end[0])} {end[1]}\n")
            telling.close()


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise EOFError("a request ended in its middle")
        received += part
    return bytes(received)


def _collect(pid: int) -> tuple[int, int] | None:
    """Return the status of a child that has ended and its time, after killing its group; None while it runs.

    The time is that of the processor in microseconds, with that of the descendants for which the child waited.
    """
    if hasattr(os, "waitid"):
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        # Before the status is collected: until then no other process can have this id.
        _kill_group(pid)
        _pid, status, used = os.wait4(pid, 0)
        return status, _microseconds(used)
    # macOS has no waitid. There an unrelated process could get this id only after the whole group is gone and the
    # system has used up every other id, which does not happen between two lines.
    ended, status, used = os.wait4(pid, os.WNOHANG)
    if not ended:
        return None
    _kill_group(pid)
    return status, _microseconds(used)


def _microseconds(used: resource.struct_rusage) -> int:
    return round((used.ru_utime + used.ru_stime) * 1_000_000)


def _tell(telling: socket.socket, line: str) -> None:
    # Nobody listens where the task that waited was cancelled.
    with contextlib.suppress(OSError):
        telling.sendall(line.encode("ascii"))


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _import(script: str) -> Main:
    """Import a Python file and return its ``main``."""
    specification = importlib.util.spec_from_file_location(Path(script).stem, script)
    if specification is None or specification.loader is None:
        raise ImportError(f"{script} is no Python file")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    main: Main = module.main
    return main


def _raise(error: Exception, _arguments: list[str]) -> NoReturn:
    raise error


def _run(request: dict[str, Any], descriptors: list[int], work: Main | None, server: int) -> NoReturn:
    """Be the child: take the descriptors, set the limits, and do the work of ``request``."""
    status = 1
    try:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
        # The sockets of the server above all: a child that held them could start others without limits.
        os.closerange(_FIRST_FREE, os.sysconf("SC_OPEN_MAX"))
        os.chdir(request["cwd"])
        limit_this_process(request["limits"], parent=server)
        arguments: list[str] = request["arguments"]
        if work is None:
            os.execve(arguments[0], arguments, request["environment"])  # noqa: S606 - an absolute path chosen by our own code
        os.environ.clear()
        os.environ.update(request["environment"])
        result = work(arguments)
        status = result if isinstance(result, int) else 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            sys.stderr.write(f"{error.code}\n")
    except BaseException:  # noqa: BLE001 - the last lines of this process
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)


def main() -> None:
    """Serve the socket whose descriptor is on the command line."""
    # Ctrl-C goes to the whole terminal; the process that asks decides when its children end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = _Server(socket.socket(fileno=int(sys.argv[1])))
    try:
        server.serve()
    finally:
        server.close()


if __name__ == "__main__":
    main()
