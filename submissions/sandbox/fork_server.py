"""Ask the fork servers of this process for children, and start them where none runs."""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from submissions.sandbox.fork_server_main import LENGTH

_MODULE: Final = "submissions.sandbox.fork_server_main"
_ROOT: Final = str(Path(__file__).parents[2])
# Its children inherit none of this but PYTHONHASHSEED, which an interpreter reads at its start: a fixed order of sets,
# because the same content must give the same result.
_ENVIRONMENT: Final = {
    "PATH": os.defpath,
    "LANG": "C.UTF-8",
    "PYTHONPATH": _ROOT,
    "PYTHONUTF8": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}


class ForkServer:
    """A fork server of this process; one that has died is replaced at the next request.

    It ends with this process, and so do its children.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def start_child(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        """Have a child started; see ``fork_server_main`` for ``request`` and ``descriptors``, which stay open here.

        Raises OSError where the server cannot be started. That the child cannot be is told on the last descriptor.
        """
        body = json.dumps(request).encode("ascii")
        message = LENGTH.pack(len(body)) + body
        with self._lock:
            if self._control is not None:
                try:
                    _send(self._control, message, descriptors)
                except (BrokenPipeError, ConnectionResetError):
                    # It died between two requests. A half of this one may have reached it, and went with it.
                    self._stop()
                else:
                    return
            _send(self._start(), message, descriptors)

    def close(self) -> None:
        """End the server and its children."""
        with self._lock:
            self._stop()

    def _start(self) -> socket.socket:
        control, served = socket.socketpair()
        with served:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-s", "-P", "-m", _MODULE, str(served.fileno())],
                    env=_ENVIRONMENT,
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[served.fileno()],
                    start_new_session=True,
                )
            except BaseException:
                control.close()
                raise
        self._control = control
        return control

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.wait()
            self._process = None


def _send(control: socket.socket, message: bytes, descriptors: Sequence[int]) -> None:
    sent = socket.send_fds(control, [message], list(descriptors))
    control.sendall(message[sent:])


# What a fork costs grows with the memory of the process that forks. A program replaces what it is forked from, so the
# server of programs imports nothing.
script_server: Final = ForkServer()
program_server: Final = ForkServer()


def close_fork_servers() -> None:
    """End the fork servers of this process and their children."""
    script_server.close()
    program_server.close()


atexit.register(close_fork_servers)
