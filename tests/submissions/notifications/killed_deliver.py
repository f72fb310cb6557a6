"""Do what is told, or tell it, in one environment after another, each in a process that dies by SIGKILL at a point.

The arguments are the points of ``tests.killed_writes``. Each process is forked from this one, which has loaded the
product once.
"""

from __future__ import annotations

from typing import Final

import django
from asgiref.sync import async_to_sync

from tests.killed_writes import Arm, die_at_each_point

WRITES: Final = {
    "event": 'INSERT INTO "submissions_notificationevent"',
    "delivery": 'INSERT INTO "submissions_notificationdelivery"',
    "fanned": 'UPDATE "submissions_notificationevent"',
    # Leased, and settled.
    "lease": 'UPDATE "submissions_notificationdelivery"',
    "log": 'INSERT INTO "submissions_deliveryattempt"',
}


def _do_or_tell(environment: str, name: str, arm: Arm) -> None:
    from dataclasses import replace  # noqa: PLC0415 - after setup

    from submissions.notifications.deliver import deliver  # noqa: PLC0415
    from submissions.states import State  # noqa: PLC0415
    from submissions.store.transitions import transition  # noqa: PLC0415
    from tests.submissions.factories import make_submission  # noqa: PLC0415
    from tests.submissions.source.https_host import CERTIFICATE  # noqa: PLC0415
    from vskill.environments import get_environment  # noqa: PLC0415
    from vskill.worker_context import run_with_worker_env  # noqa: PLC0415

    env = get_environment(environment)
    env = replace(env, policy=replace(env.policy, source_ca_file=str(CERTIFICATE)))
    one = make_submission(env, State.TIER1_SCANNING) if name == "event" else None

    async def tell() -> None:
        await run_with_worker_env(env, deliver)

    arm()
    if one is not None:
        from django.db import connection  # noqa: PLC0415

        connection.close()
        transition(env, one, State.ON_HOLD, reason="killed", actor="test", trigger="test")
    async_to_sync(tell)()


def main() -> None:
    """Run with the variables of the process."""
    django.setup()
    from submissions.notifications import deliver  # noqa: F401, PLC0415 - loaded once for all

    die_at_each_point(WRITES, _do_or_tell)


if __name__ == "__main__":
    main()
