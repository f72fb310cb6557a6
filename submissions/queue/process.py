"""Run a consumer of isolated messages in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Sequence
from typing import Final

from django.conf import settings

from vskill.environments import WorkerEnv

logger = logging.getLogger(__name__)

# How long a process that was told to stop may take beyond its own grace.
STOP_SECONDS: Final = 5.0


def isolated_command(env: WorkerEnv) -> list[str]:
    """Return the command that handles the isolated messages of an environment and ends."""
    return [
        sys.executable,
        str(settings.BASE_DIR / "manage.py"),
        "consume",
        "--isolated",
        "--environment",
        env.name,
    ]


async def run_process(command: Sequence[str]) -> None:
    """Run a command in a process of its own until it ends; cancelled, tell it to stop and wait until it has."""
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL)
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        await _stop(process)
        raise
    if code:
        logger.error("the process of an isolated message ended with %s; the message is counted as crashed", code)


async def _stop(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(settings.QUEUE_SHUTDOWN_GRACE + STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
