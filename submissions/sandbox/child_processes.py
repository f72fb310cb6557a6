"""Run a program in a child process with limits of time, memory and output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_LAUNCHER = str(Path(__file__).with_name("limited_exec.py"))
# How long to wait for the pipes to close once the child has exited. Only a descendant that left the process group can
# still hold them open.
_DRAIN_SECONDS = 1.0


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
    """The result of a child process; a negative ``returncode`` is the signal that ended it."""

    outcome: ChildOutcome
    returncode: int
    stdout: bytes
    stderr: bytes

    @property
    def ok(self) -> bool:
        """Tell whether the child exited with status 0."""
        return self.outcome is ChildOutcome.EXITED and self.returncode == 0


async def run_child(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, limits: ChildLimits, stdin: bytes = b""
) -> ChildResult:
    """Run a program in a child process and return how it ended and what it wrote.

    ``argv`` starts with the absolute path of the program; no shell is involved. ``env`` is its whole environment,
    ``cwd`` its working directory, ``stdin`` its input. The child gets its own session. Its process group is killed when
    it ends, when it exceeds the time or output of ``limits``, and when the calling task is cancelled; the child also
    dies with this process. Raises OSError only when no child can be started.
    """
    settings = {
        "parent": os.getpid(),
        "address_space": limits.address_space,
        "cpu_seconds": limits.cpu_seconds,
        "file_bytes": limits.file_bytes,
        "open_files": limits.open_files,
        "network": int(limits.network),
    }
    output = _Output(limits)
    transport, _ = await asyncio.get_running_loop().subprocess_exec(
        lambda: output,
        sys.executable,
        "-I",
        "-S",
        _LAUNCHER,
        *(f"{name}={value}" for name, value in settings.items() if value is not None),
        "--",
        *argv,
        env=dict(env),
        cwd=cwd,
        start_new_session=True,
    )
    try:
        _write_stdin(transport, stdin)
        outcome = await _wait(output, limits)
    finally:
        # After a normal exit too, because a descendant may still run in the group.
        _kill_group(transport.get_pid())
        await asyncio.shield(output.exited)
        transport.close()
        await asyncio.shield(output.closed)
    returncode = transport.get_returncode()
    return ChildResult(
        outcome, -signal.SIGKILL if returncode is None else returncode, bytes(output.out), bytes(output.err)
    )


async def _wait(output: _Output, limits: ChildLimits) -> ChildOutcome:
    """Wait until the child has exited, its output exceeds the limit or its time is up."""
    try:
        async with asyncio.timeout(limits.seconds):
            await asyncio.wait({output.exited, output.flooded}, return_when=asyncio.FIRST_COMPLETED)
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


def _write_stdin(transport: asyncio.SubprocessTransport, stdin: bytes) -> None:
    pipe = transport.get_pipe_transport(0)
    assert isinstance(pipe, asyncio.WriteTransport), "the child is always started with a pipe for its stdin"  # noqa: S101 - narrows a type
    pipe.write(stdin)
    pipe.close()


def _kill_group(pid: int) -> None:
    # An unrelated process could get this id only after the whole group is gone and the system has used up every other
    # id, which does not happen between the end of a child and this line.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


class _Output(asyncio.SubprocessProtocol):
    """Collects the output of a child, and has a future for each event that the caller waits for.

    ``complete`` is set once both pipes are closed. ``Process.wait()`` is not used because it waits for the pipes as
    well, which any descendant can keep open.
    """

    def __init__(self, limits: ChildLimits) -> None:
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.complete: asyncio.Future[None] = loop.create_future()
        self.flooded: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.out = bytearray()
        self.err = bytearray()
        self._limits = limits
        self._open = {1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            room = self._limits.output_bytes - len(self.out)
            self.out += data[:room]
            if len(data) > room:
                _settle(self.flooded)
        else:
            self.err += data[: max(0, self._limits.error_bytes - len(self.err))]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - given by asyncio
        self._open.discard(fd)
        if not self._open:
            _settle(self.complete)

    def process_exited(self) -> None:
        _settle(self.exited)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - given by asyncio
        _settle(self.closed)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
