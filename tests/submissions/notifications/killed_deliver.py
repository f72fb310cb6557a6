"""Do what is told, or tell it, in one environment after another, each in a process that dies by SIGKILL at a point.

The arguments are points, ``ENVIRONMENT:NAME:WHEN:N``: before or after the N-th write of NAME. Each is forked from this
process, which has loaded the product once; how each ended is printed, a line each.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, Final, NoReturn

import django
from asgiref.sync import async_to_sync
from django.db.backends.signals import connection_created

WRITES: Final = {
    "event": 'INSERT INTO "submissions_notificationevent"',
    "delivery": 'INSERT INTO "submissions_notificationdelivery"',
    "fanned": 'UPDATE "submissions_notificationevent"',
    # Leased, and settled.
    "lease": 'UPDATE "submissions_notificationdelivery"',
    "log": 'INSERT INTO "submissions_deliveryattempt"',
}


class _Death:
    """Kill this process around a write."""

    def __init__(self, name: str, when: str, number: int) -> None:
        self._words, self._when, self._left = WRITES[name], when, number

    def __call__(self, run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if self._words not in sql:
            return run(sql, params, many, context)
        self._left -= 1
        if not self._left and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = run(sql, params, many, context)
        if not self._left and self._when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result


def _run_and_die(point: str) -> NoReturn:
    from dataclasses import replace  # noqa: PLC0415 - after setup

    from submissions.notifications.deliver import deliver  # noqa: PLC0415
    from submissions.states import State  # noqa: PLC0415
    from submissions.store.transitions import transition  # noqa: PLC0415
    from tests.submissions.factories import make_submission  # noqa: PLC0415
    from tests.submissions.source.https_host import CERTIFICATE  # noqa: PLC0415
    from vskill.environments import get_environment  # noqa: PLC0415
    from vskill.worker_context import run_with_worker_env  # noqa: PLC0415

    environment, name, when, number = point.split(":")
    env = get_environment(environment)
    env = replace(env, policy=replace(env.policy, source_ca_file=str(CERTIFICATE)))
    one = make_submission(env, State.TIER1_SCANNING) if name == "event" else None
    death = _Death(name, when, int(number))

    def watch(connection: Any, **_: Any) -> None:
        if death not in connection.execute_wrappers:
            connection.execute_wrappers.append(death)

    async def tell() -> None:
        await run_with_worker_env(env, deliver)

    try:
        connection_created.connect(watch, weak=False)
        if one is not None:
            from django.db import connection  # noqa: PLC0415

            connection.close()
            transition(env, one, State.ON_HOLD, reason="killed", actor="test", trigger="test")
        async_to_sync(tell)()
    finally:
        os._exit(1)


def main() -> None:
    """Run with the variables of the process; a child that is not killed ends with 1."""
    django.setup()
    from submissions.notifications import deliver  # noqa: F401, PLC0415 - loaded once for all

    for point in sys.argv[1:]:
        pid = os.fork()
        if pid == 0:
            _run_and_die(point)
        _pid, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 - what the test waits for


if __name__ == "__main__":
    main()
