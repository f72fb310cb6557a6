"""Run a program in a child process with limits of time, memory and output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

from submissions.sandbox.fork_server import program_server, script_server

T = TypeVar("T")

# How long to wait for the pipes to close once the child has exited. Only a descendant that left the process group can
# still hold them open.
_DRAIN_SECONDS: Final = 1.0
# The pipes that a child writes into: stdout and stderr.
_OUTPUTS: Final = 2
_KILLED: Final = -int(signal.SIGKILL)


@dataclass(frozen=True)
class ChildLimits:
    """Limits of one child process; None leaves a limit to the system.

    ``seconds`` is wall-clock time. A child that writes more than ``output_bytes`` to stdout is killed; stderr beyond
    ``error_bytes`` is read and dropped. ``address_space`` (bytes), ``cpu_seconds``, ``file_bytes`` (the size of each
    file that it writes) and ``open_files`` are set with setrlimit, so its descendants inherit them, each with a limit
    of its own. With ``network`` False, the child has no network if the kernel permits that.
    """

    seconds: float
    output_bytes: int
    error_bytes: int = 64 * 1024
    address_space: int | None = None
    cpu_seconds: int | None = None
    file_bytes: int | None = None
    open_files: int | None = 256
    network: bool = True


class ChildOutcome(StrEnum):
    """How a child ended: by itself, whatever its exit status, or killed because of time or output."""

    EXITED = "exited"
    TIMED_OUT = "timed_out"
    FLOODED = "flooded"


@dataclass(frozen=True)
class ChildResult:
    """The result of a child process.

    A negative ``returncode`` is the signal that ended it. ``cpu_seconds`` is what it used of the processor; 0
    where that is not known.
    """

    outcome: ChildOutcome
    returncode: int
    stdout: bytes
    stderr: bytes
    cpu_seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Tell whether the child exited with status 0."""
        return self.outcome is ChildOutcome.EXITED and self.returncode == 0


@dataclass(frozen=True)
class PreparedScript:
    """A call of ``main(arguments)`` of a Python file that the fork server imports once, ahead of all calls.

    ``path`` is absolute. The file must be ours: what it imports and does on import is done outside the limits.
    """

    path: Path
    arguments: tuple[str, ...]


async def run_child(
    command: Sequence[str] | PreparedScript,
    *,
    env: Mapping[str, str],
    cwd: Path,
    limits: ChildLimits,
    stdin: bytes | socket.socket = b"",
) -> ChildResult:
    """Run a program or a prepared script in a child process and return how it ended and what it wrote.

    ``command`` is a script, or a command line that starts with the absolute path of a program; no shell is involved.
    ``env`` is its whole environment, ``cwd`` its working directory, ``stdin`` its input, or one end of a socket pair
    over which it is talked to; that end is closed here. The child gets a process group of its own, which is killed
    when it ends, when it exceeds the time or output of ``limits``, and when the calling task is cancelled; the child
    also dies with this process. Raises OSError only when no child can be started.
    """
    if isinstance(command, PreparedScript):
        server, script, arguments = script_server, str(command.path), command.arguments
    else:
        server, script, arguments = program_server, "", tuple(command)
    request = {
        "script": script,
        "arguments": list(arguments),
        "environment": dict(env),
        "cwd": str(cwd),
        "limits": asdict(limits),
    }
    loop = asyncio.get_running_loop()
    with ExitStack() as open_here:
        output = _Output(limits)
        with ExitStack() as open_there:
            source, sink = _stdin(stdin, open_here, open_there)
            out, out_there = _pipe(open_here, open_there)
            error, error_there = _pipe(open_here, open_there)
            telling, told_there = socket.socketpair()
            open_here.enter_context(telling)
            open_there.enter_context(told_there)
            there = (source, out_there, error_there, told_there)
            server.start_child(request, [end.fileno() for end in there])
        telling.setblocking(False)
        loop.add_reader(telling, output.hear, telling)
        try:
            await output.read(out, error)
            if sink is not None:
                await output.write(*sink)
            outcome = await _wait(output, limits)
        finally:
            # The server kills the group when this side is closed for writing, and then tells of the end.
            with contextlib.suppress(OSError):
                telling.shutdown(socket.SHUT_WR)
            await asyncio.shield(output.exited)
            loop.remove_reader(telling)
            await asyncio.shield(output.close())
    ended = output.exited.result()
    if isinstance(ended, OSError):
        raise ended
    return ChildResult(outcome, ended, bytes(output.out), bytes(output.err), output.cpu_seconds)


def _pipe(open_here: ExitStack, open_there: ExitStack) -> tuple[BinaryIO, BinaryIO]:
    """Return both ends of a pipe that the child writes into."""
    read_end, write_end = os.pipe()
    return (
        open_here.enter_context(os.fdopen(read_end, "rb", 0)),
        open_there.enter_context(os.fdopen(write_end, "wb", 0)),
    )


def _stdin(
    content: bytes | socket.socket, open_here: ExitStack, open_there: ExitStack
) -> tuple[BinaryIO | socket.socket, tuple[BinaryIO, bytes] | None]:
    """Return what the child reads from, and, where there is content, the end to write it into with that content."""
    if isinstance(content, socket.socket):
        return open_there.enter_context(content), None
    if not content:
        return open_there.enter_context(Path(os.devnull).open("rb", 0)), None
    read_end, write_end = os.pipe()
    return (
        open_there.enter_context(os.fdopen(read_end, "rb", 0)),
        (open_here.enter_context(os.fdopen(write_end, "wb", 0)), content),
    )


async def _wait(output: _Output, limits: ChildLimits) -> ChildOutcome:
    """Wait until the child has exited, its output exceeds the limit or its time is up."""
    try:
        async with asyncio.timeout(limits.seconds):
            either: set[asyncio.Future[Any]] = {output.exited, output.flooded}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not output.flooded.done():
                # What the child wrote before it exited may still be in the pipes.
                await asyncio.wait(
                    {output.complete, output.flooded},
                    return_when=asyncio.FIRST_COMPLETED,
                    timeout=_DRAIN_SECONDS,
                )
    except TimeoutError:
        return ChildOutcome.TIMED_OUT
    return ChildOutcome.FLOODED if output.flooded.done() else ChildOutcome.EXITED


class _Pipe(asyncio.Protocol):
    """One pipe of a child: ``receive`` gets what arrives, and ``closed`` is set when its transport has closed it."""

    def __init__(self, receive: Callable[[bytes], None]) -> None:
        self._receive = receive
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self._receive(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - given by asyncio
        _settle(self.closed, None)


class _Output:
    """Collects the output of a child, and has a future for each event that the caller waits for.

    ``exited`` has the exit status, or the error where no child could be started. ``complete`` is set once both pipes
    are closed, which any descendant can delay.
    """

    def __init__(self, limits: ChildLimits) -> None:
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int | OSError] = self._loop.create_future()
        self.complete: asyncio.Future[None] = self._loop.create_future()
        self.flooded: asyncio.Future[None] = self._loop.create_future()
        self.out = bytearray()
        self.err = bytearray()
        self.cpu_seconds = 0.0
        self._limits = limits
        self._told = bytearray()
        self._transports: list[asyncio.BaseTransport] = []
        self._closed: list[asyncio.Future[None]] = []

    async def read(self, out: BinaryIO, error: BinaryIO) -> None:
        """Collect what arrives on the two pipes."""
        for pipe, receive in zip((out, error), (self._take_output, self._take_error), strict=True):
            transport, protocol = await self._loop.connect_read_pipe(partial(_Pipe, receive), pipe)
            self._closed.append(protocol.closed)
            protocol.closed.add_done_callback(self._pipe_closed)
            self._transports.append(transport)

    async def write(self, sink: BinaryIO, content: bytes) -> None:
        """Write ``content`` into the stdin of the child, as fast as it reads, and close it."""
        transport, protocol = await self._loop.connect_write_pipe(partial(_Pipe, self._take_error), sink)
        self._transports.append(transport)
        self._closed.append(protocol.closed)
        transport.write(content)
        transport.close()

    async def close(self) -> None:
        """Close the pipes, whatever is still in them."""
        for transport, closed in zip(self._transports, self._closed, strict=True):
            # What a child has not read by now would keep the transport open.
            if isinstance(transport, asyncio.WriteTransport) and not closed.done():
                transport.abort()
            transport.close()
        await asyncio.gather(*self._closed)

    def hear(self, telling: socket.socket) -> None:
        """Read what the fork server tells of the child."""
        try:
            heard = telling.recv(64)
        except BlockingIOError:
            return
        except ConnectionResetError:
            heard = b""
        self._told += heard
        if heard and not self._told.endswith(b"\n"):
            return
        self._loop.remove_reader(telling)
        # Where nothing is heard, the server has ended, and its children with it.
        event, number, *used = self._told.decode("ascii").split() if heard else ("exit", str(_KILLED))
        self.cpu_seconds = int(used[0]) / 1_000_000 if used else 0.0
        _settle(self.exited, int(number) if event == "exit" else OSError(int(number), os.strerror(int(number))))

    def _take_output(self, data: bytes) -> None:
        room = self._limits.output_bytes - len(self.out)
        self.out += data[:room]
        if len(data) > room:
            _settle(self.flooded, None)

    def _take_error(self, data: bytes) -> None:
        self.err += data[: max(0, self._limits.error_bytes - len(self.err))]

    def _pipe_closed(self, _closed: asyncio.Future[None]) -> None:
        if len(self._closed) >= _OUTPUTS and all(one.done() for one in self._closed[:_OUTPUTS]):
            _settle(self.complete, None)


def _settle(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)
