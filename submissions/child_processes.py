"""Run a program in a child that cannot outlive, outgrow or outtalk its limits."""

from __future__ import annotations

import asyncio
import contextlib
import json
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
_CHUNK = 64 * 1024


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
        "network": limits.network,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        _LAUNCHER,
        json.dumps(settings),
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(env),
        cwd=cwd,
        start_new_session=True,
    )
    conversation = asyncio.ensure_future(_converse(process, stdin, limits))
    try:
        async with asyncio.timeout(limits.seconds):
            flooded, stdout, stderr = await asyncio.shield(conversation)
            outcome = ChildOutcome.FLOODED if flooded else ChildOutcome.EXITED
    except TimeoutError:
        _kill_group(process)
        flooded, stdout, stderr = await conversation
        outcome = ChildOutcome.TIMED_OUT
    finally:
        _kill_group(process)
        if not conversation.done():
            conversation.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await conversation
        await process.wait()
        _close(process)
    return ChildResult(outcome, process.returncode or 0, stdout, stderr)
