"""Work off last chances in a process of their own.

A message whose worker died so often that one more death would park it may be the killer, or one of those that were in
the same process. Alone in a process it shows which: whoever dies there died for itself.
"""

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

# Beyond its own grace, how long a process that was told to stop may take.
STOP_SECONDS: Final = 5.0


def consume_last_chances(env: WorkerEnv) -> list[str]:
    """Return the command that works off the last chances of an environment and ends."""
    return [
        sys.executable,
        str(settings.BASE_DIR / "manage.py"),
        "consume",
        "--last-chances",
        "--environment",
        env.name,
    ]


async def run_apart(command: Sequence[str]) -> None:
    """Run a command in a process of its own until it ends; cancelled, tell it to stop and wait until it has."""
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL)
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        await _stop(process)
        raise
    if code:
        logger.error("the process that worked on a last chance ended with %s; its message is counted as crashed", code)


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
