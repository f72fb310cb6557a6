"""Poll in one environment after another, each in a process that dies by SIGKILL at a point of its own.

The arguments are the points of ``tests.killed_writes``. Each process is forked from this one, which has loaded the
product once.
"""

from __future__ import annotations

from typing import Final

import django
from asgiref.sync import async_to_sync

from tests.killed_writes import Arm, die_at_each_point

WRITES: Final = {
    "followed": 'UPDATE "marketplace_followedentry"',
    "submission": 'INSERT INTO "submissions_submissionentry"',
}


def _poll(environment: str, _name: str, arm: Arm) -> None:
    from submissions.following.poll import poll_followed  # noqa: PLC0415 - after setup
    from vskill.environments import get_environment  # noqa: PLC0415
    from vskill.worker_context import run_with_worker_env  # noqa: PLC0415

    async def poll() -> None:
        await run_with_worker_env(get_environment(environment), poll_followed, limit=10, pause=0.0)

    arm()
    async_to_sync(poll)()


def main() -> None:
    """Run with the variables of the process."""
    django.setup()
    from submissions.following import poll  # noqa: F401, PLC0415 - loaded once for all

    die_at_each_point(WRITES, _poll)


if __name__ == "__main__":
    main()
