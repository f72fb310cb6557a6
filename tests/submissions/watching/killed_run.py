"""Watch once, and die by SIGKILL at the first write of a reference: between the fetch and what is stored of it."""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta
from typing import Any

import django
from asgiref.sync import async_to_sync
from django.db.backends.signals import connection_created


def _die(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    if sql.lstrip().upper().startswith("UPDATE") and "marketplace_referenceentry" in sql:
        print("fetched", flush=True)  # noqa: T201 - what the test waits for
        os.kill(os.getpid(), signal.SIGKILL)
    return execute(sql, params, many, context)


def _watch_connection(connection: Any, **_: Any) -> None:
    connection.execute_wrappers.append(_die)


def main() -> None:
    """Run in the environment that the variables of the process describe."""
    connection_created.connect(_watch_connection)
    django.setup()
    from submissions.watching.watch import Pace, watch_references  # noqa: PLC0415 - after setup
    from vskill.environments import get_environment  # noqa: PLC0415
    from vskill.worker_context import run_with_worker_env  # noqa: PLC0415

    env = get_environment(sys.argv[1])

    async def watch() -> None:
        await run_with_worker_env(env, watch_references, env, Pace(pause=timedelta()))

    async_to_sync(watch)()


if __name__ == "__main__":
    main()
