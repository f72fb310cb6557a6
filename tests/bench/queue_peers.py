"""The peers' part of the measurement of the queue: ``PEER prepare JOBS`` or ``PEER work``.

Runs in the environment of build/bench-peers, where nothing of the product is imported. On SQLite the peer gets the
settings of the product's own database; each peer works as its documentation recommends for throughput.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from importlib import import_module
from typing import Any, Final

from tests.bench.ready import say, wait_for_the_others

CONCURRENCY: Final = 30


class DjangoTasks:
    """django-tasks-db: one job at a time a process, in a table of its own."""

    def __init__(self) -> None:
        environ = import_module("environ")
        django = import_module("django")
        settings = import_module("django.conf").settings
        database = environ.Env.db_url_config(os.environ["DATABASE_URL"])
        if database["ENGINE"] == "django.db.backends.sqlite3":
            database["OPTIONS"] = {
                "transaction_mode": "IMMEDIATE",
                "timeout": 30,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-16000;",
            }
        database["CONN_MAX_AGE"] = None
        settings.configure(
            DATABASES={"default": database},
            SECRET_KEY="bench",
            USE_TZ=True,
            INSTALLED_APPS=["django_tasks", "django_tasks_db"],
            TASKS={"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}},
            DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        )
        django.setup()

    def prepare(self, jobs: int) -> None:
        """Make the tables and the jobs."""
        import_module("django.core.management").call_command("migrate", verbosity=0)
        task = import_module("tests.bench.queue_peer_tasks").nothing
        with import_module("django.db").transaction.atomic():
            for _ in range(jobs):
                task.enqueue()

    def work(self) -> None:
        """Work until nothing is left."""
        worker_class = import_module("django_tasks_db.management.commands.db_worker").Worker
        worker = worker_class(
            queue_names=["default"],
            interval=0,
            batch=True,
            backend_name="default",
            startup_delay=False,
            max_tasks=None,
            worker_id=f"bench{os.getpid()}",
            excluded_queue_names=[],
        )
        import_module("tests.bench.queue_peer_tasks")
        began_at = wait_for_the_others()
        worker.run()
        say({"done": worker._run_tasks, "seconds": time.perf_counter() - began_at})


class Procrastinate:
    """procrastinate: many jobs at a time a process, claimed one by one by a function in PostgreSQL."""

    def __init__(self) -> None:
        procrastinate = import_module("procrastinate")
        # It warns of applications in a main module, whose tasks other processes cannot find; here each defines its own.
        logging.getLogger("procrastinate").setLevel(logging.ERROR)
        address = os.environ["DATABASE_URL"].replace("postgres://", "postgresql://")
        self._app: Any = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=address))
        self._done = 0

        async def nothing() -> None:
            self._done += 1

        self._task = self._app.task(name="nothing")(nothing)

    def prepare(self, jobs: int) -> None:
        """Make the tables and the jobs."""

        async def main() -> None:
            async with self._app.open_async():
                await self._app.schema_manager.apply_schema_async()
                await self._task.batch_defer_async(*[{} for _ in range(jobs)])

        asyncio.run(main())

    def work(self) -> None:
        """Work until nothing is left."""

        async def main() -> float:
            async with self._app.open_async():
                began_at = wait_for_the_others()
                await self._app.run_worker_async(
                    wait=False, concurrency=CONCURRENCY, install_signal_handlers=False, listen_notify=False
                )
                return time.perf_counter() - began_at

        seconds = asyncio.run(main())
        say({"done": self._done, "seconds": seconds})


if __name__ == "__main__":
    peers: dict[str, type[DjangoTasks | Procrastinate]] = {
        "django-tasks-db": DjangoTasks,
        "procrastinate": Procrastinate,
    }
    peer = peers[sys.argv[1]]()
    if sys.argv[2] == "prepare":
        peer.prepare(int(sys.argv[3]))
    else:
        peer.work()
