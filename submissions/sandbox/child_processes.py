"""Run a program in a child that cannot outlive, outgrow or outtalk its limits."""

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
# How long to wait for the pipes to close once the child itself is gone: only a descendant that left the process
# group can still hold them.
_DRAIN_SECONDS = 1.0


@dataclass(frozen=True)
class ChildLimits:
    """Bounds of one child; None leaves a bound to the system.

    ``seconds`` is wall-clock time. ``output_bytes`` bounds stdout, whose excess ends the child; stderr beyond
    ``error_bytes`` is read and dropped. ``file_bytes`` bounds every single file the child writes. The child's own
    memory (``address_space``), CPU time and open files are set with setrlimit, so that its descendants inherit them.
    ``network`` False cuts the child off from every network where the kernel allows that to be done.
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
    """How a child ended: by itself (whatever its exit status), or ended by us for one of two reasons."""

    EXITED = "exited"
    TIMED_OUT = "timed_out"
    FLOODED = "flooded"


@dataclass(frozen=True)
class ChildResult:
    """What a child left behind; a negative ``returncode`` is the signal that ended it."""

    outcome: ChildOutcome
    returncode: int
    stdout: bytes
    stderr: bytes

    @property
    def ok(self) -> bool:
        """Tell whether the child ended by itself with status 0."""
        return self.outcome is ChildOutcome.EXITED and self.returncode == 0


async def run_child(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, limits: ChildLimits, stdin: bytes = b""
) -> ChildResult:
    """Run ``argv`` (an absolute program first, never a shell line) with exactly ``env`` and return what it left.

    The child gets a session of its own and is killed with its whole group when its time is up, when it writes too
    much, and when the calling task is cancelled; it also dies with this process. Raises OSError only when no child
    can be started at all.
    """
    settings = {
        "parent": os.getpid(),
        "address_space": limits.address_space,
        "cpu_seconds": limits.cpu_seconds,
        "file_bytes": limits.file_bytes,
        "open_files": limits.open_files,
        "network": int(limits.network),
    }
    conversation = _Conversation(limits)
    transport, _ = await asyncio.get_running_loop().subprocess_exec(
        lambda: conversation,
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
        _say(transport, stdin)
        outcome = await _listen(conversation, limits)
    finally:
        # Also after an orderly end: a descendant may still be running in the group.
        _kill_group(transport.get_pid())
        await asyncio.shield(conversation.exited)
        transport.close()
        await asyncio.shield(conversation.closed)
    returncode = transport.get_returncode()
    return ChildResult(
        outcome, -signal.SIGKILL if returncode is None else returncode, bytes(conversation.out), bytes(conversation.err)
    )


async def _listen(conversation: _Conversation, limits: ChildLimits) -> ChildOutcome:
    """Wait for the child to end, for its output to pass the limit, or for its time to be up."""
    try:
        async with asyncio.timeout(limits.seconds):
            await asyncio.wait({conversation.exited, conversation.flooded}, return_when=asyncio.FIRST_COMPLETED)
            if not conversation.flooded.done():
                # What the child wrote before it ended may still be in the pipes.
                await asyncio.wait(
                    {conversation.heard, conversation.flooded},
                    return_when=asyncio.FIRST_COMPLETED,
                    timeout=_DRAIN_SECONDS,
                )
    except TimeoutError:
        return ChildOutcome.TIMED_OUT
    return ChildOutcome.FLOODED if conversation.flooded.done() else ChildOutcome.EXITED


def _say(transport: asyncio.SubprocessTransport, stdin: bytes) -> None:
    pipe = transport.get_pipe_transport(0)
    assert isinstance(pipe, asyncio.WriteTransport), "the child is always started with a pipe for its stdin"  # noqa: S101 - narrows a type
    pipe.write(stdin)
    pipe.close()


def _kill_group(pid: int) -> None:
    # The id of the group can be taken by a stranger only after the whole group is gone and every other id was used
    # up meanwhile, which does not happen between the end of a child and this line.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


class _Conversation(asyncio.SubprocessProtocol):
    """Collects what a child says; its futures are how the rest waits.

    ``Process.wait()`` is not used because it waits for the pipes as well, which any descendant can keep open.
    """

    def __init__(self, limits: ChildLimits) -> None:
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.heard: asyncio.Future[None] = loop.create_future()
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
            _settle(self.heard)

    def process_exited(self) -> None:
        _settle(self.exited)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - given by asyncio
        _settle(self.closed)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
