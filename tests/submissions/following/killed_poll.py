"""Poll in one environment after another, each in a process that dies by SIGKILL at a point of its own.

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
    "followed": 'UPDATE "marketplace_followedentry"',
    "submission": 'INSERT INTO "submissions_submissionentry"',
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


def _poll_and_die(point: str) -> NoReturn:
    from submissions.following.poll import poll_followed  # noqa: PLC0415 - after setup
    from vskill.environments import get_environment  # noqa: PLC0415
    from vskill.worker_context import run_with_worker_env  # noqa: PLC0415

    environment, name, when, number = point.split(":")
    death = _Death(name, when, int(number))

    def watch(connection: Any, **_: Any) -> None:
        if death not in connection.execute_wrappers:
            connection.execute_wrappers.append(death)

    connection_created.connect(watch, weak=False)

    async def poll() -> None:
        await run_with_worker_env(get_environment(environment), poll_followed, limit=10, pause=0.0)

    try:
        async_to_sync(poll)()
    finally:
        os._exit(1)


def main() -> None:
    """Run with the variables of the process; a child that is not killed ends with 1."""
    django.setup()
    from submissions.following import poll  # noqa: F401, PLC0415 - loaded once for all

    for point in sys.argv[1:]:
        pid = os.fork()
        if pid == 0:
            _poll_and_die(point)
        _pid, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 - what the test waits for


if __name__ == "__main__":
    main()
