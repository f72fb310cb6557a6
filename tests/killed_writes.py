"""Run something in processes each of which dies by SIGKILL at a point: before or after the N-th write of a name."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

from django.db.backends.signals import connection_created

Arm = Callable[[], None]
"""What makes connections that are opened from then on deadly."""


class Death:
    """Kill this process around the N-th statement that has some words."""

    def __init__(self, words: str, when: str, number: int) -> None:
        """Begin with ``number`` statements left; ``when`` is before or after."""
        self._words, self._when, self._left = words, when, number

    def __call__(self, run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        """Execute a statement, as a wrapper of Django's does."""
        if self._words not in sql:
            return run(sql, params, many, context)
        self._left -= 1
        if not self._left and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = run(sql, params, many, context)
        if not self._left and self._when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    def arm(self) -> None:
        """Watch every connection that is opened from now on."""

        def watch(connection: Any, **_: Any) -> None:
            if self not in connection.execute_wrappers:
                connection.execute_wrappers.append(self)

        connection_created.connect(watch, weak=False)


def die_at_each_point(writes: Mapping[str, str], run: Callable[[str, str, Arm], None]) -> None:
    """Fork a process for each point in the arguments, ``ENVIRONMENT:NAME:WHEN:N``, and print how each ended.

    ``writes`` has the words of the statements by their names. ``run`` gets the environment, the name of the write and
    what arms the death. A process that is not killed ends with 1.
    """
    for point in sys.argv[1:]:
        pid = os.fork()
        if pid == 0:
            environment, name, when, number = point.split(":")
            try:
                run(environment, name, Death(writes[name], when, int(number)).arm)
            finally:
                os._exit(1)
        _pid, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 - what the test waits for
