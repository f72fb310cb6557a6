"""No connection is left behind: not by a command, not by a thousand requests, not by a read that failed."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.asgi import get_asgi_application
from django.core.management import call_command
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.http import HttpRequest, JsonResponse
from django.urls import path

from tests.end_to_end.processes import until
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.threads import readers, writers
from vskill.management.environment_command import EnvironmentCommand
from vskill.worker_context import require_worker_env

pytestmark = pytest.mark.django_db(transaction=True)


def held() -> int:
    """Return how many connections to the database of the tests this process holds outside of the pool."""
    if connection.vendor == "sqlite":
        name = str(Path(str(connection.settings_dict["NAME"])).resolve())
        return sum(_target(number) == name for number in os.listdir("/proc/self/fd"))  # noqa: PTH208 - numbers, not paths
    pool = connection.pool  # type: ignore[attr-defined]  # PostgreSQL's wrapper has it
    stats = pool.get_stats()
    return int(stats.get("pool_size", 0)) - int(stats.get("pool_available", 0))


def busy_threads() -> None:
    """Wait until every thread of the pools has done what comes after its last result."""
    readers.close()
    writers.close()


def _target(number: str) -> str:
    """Return the file that a descriptor leads to, empty for one that was closed meanwhile."""
    try:
        return os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115 - text, as the kernel gives it
    except FileNotFoundError:
        return ""


class OpenConnections:
    """The connections of the threads for database work, counted as they are opened and closed."""

    def __init__(self) -> None:
        self.opened = 0
        self._open: set[BaseDatabaseWrapper] = set()
        self._changed = threading.Condition()

    def on_opened(self, connection: BaseDatabaseWrapper, **_kwargs: object) -> None:
        """Count a connection as open until it is closed; a receiver of ``connection_created``."""
        if not threading.current_thread().name.startswith("kv-"):
            return
        close = connection.close

        def close_and_tell() -> None:
            close()
            with self._changed:
                self._open.discard(connection)
                self._changed.notify_all()

        with self._changed:
            self.opened += 1
            self._open.add(connection)
        connection.close = close_and_tell  # type: ignore[method-assign]  # Django has no signal for this

    def wait_until_none_is_left(self) -> None:
        """Wait until each of them has been closed."""
        with self._changed:
            assert self._changed.wait_for(lambda: not self._open, timeout=60)


@contextmanager
def open_connections() -> Iterator[OpenConnections]:
    """Count the connections that new threads for database work open while the body runs."""
    busy_threads()
    connections = OpenConnections()
    connection_created.connect(connections.on_opened)
    try:
        yield connections
    finally:
        connection_created.disconnect(connections.on_opened)
        busy_threads()


class Busy(EnvironmentCommand):
    """Read and write in every way that there is."""

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Use the threads of the KV layer, and the ORM in both of its modes."""
        namespace = KVNamespace(KVEntry, env)
        await asyncio.gather(*(namespace.put(f"key-{number}", number) for number in range(50)))
        await asyncio.gather(*(namespace.get(f"key-{number}") for number in range(3000)))
        async for outcome in namespace.get_many(namespace.list_all()):
            assert outcome.found
        assert await KVEntry.objects.acount() == 50


def test_a_command_leaves_no_connection_behind() -> None:
    connection.close()
    call_command(Busy())
    # PostgreSQL's pool takes a connection back on a thread of its own.
    until(lambda: held() == 0)


def test_a_command_that_is_cancelled_in_the_middle_leaves_none_either(env: WorkerEnv) -> None:
    connection.close()
    namespace = KVNamespace(KVEntry, env)

    async def main() -> None:
        tasks = [asyncio.create_task(namespace.get(f"key-{number}")) for number in range(5000)]
        tasks += [asyncio.create_task(namespace.get(f"key-{number}", timeout=0)) for number in range(10)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    asyncio.run(main())
    busy_threads()
    assert held() == 0


def test_a_thread_that_has_nothing_to_do_gives_its_connection_back_by_itself(env: WorkerEnv) -> None:
    connection.close()
    namespace = KVNamespace(KVEntry, env)

    async def main() -> None:
        await asyncio.gather(*(namespace.put(f"key-{number}", number) for number in range(50)))
        await asyncio.gather(*(namespace.get(f"key-{number}") for number in range(3000)))

    with open_connections() as connections:
        asyncio.run(main())
        assert connections.opened > 0
        connections.wait_until_none_is_left()
        assert held() == 0


def test_a_connection_serves_one_piece_of_work_after_the_other(env: WorkerEnv) -> None:
    opened: list[str] = []

    def count(**_kwargs: object) -> None:
        opened.append(threading.current_thread().name)

    connection_created.connect(count)
    namespace = KVNamespace(KVEntry, env)

    async def main() -> None:
        for number in range(200):
            await namespace.put("key", number)
            assert (await namespace.get("key")).value == number

    readers.close()
    writers.close()
    try:
        asyncio.run(main())
    finally:
        connection_created.disconnect(count)
    # One for each thread, and some more where the machine was so busy that a thread had waited too long.
    assert len(opened) < 100


async def answer(request: HttpRequest) -> JsonResponse:
    namespace = KVNamespace(KVEntry, require_worker_env())
    outcomes = await asyncio.gather(namespace.get("key"), namespace.get("missing"))
    return JsonResponse({"found": sum(outcome.found for outcome in outcomes), "rows": await KVEntry.objects.acount()})


def answer_synchronously(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"found": 1, "rows": KVEntry.objects.count()})


urlpatterns = [path("async", answer), path("sync", answer_synchronously)]


async def request(application: Any, target: str) -> bytes:
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "path": target,
        "query_string": b"",
        "headers": [(b"host", b"testserver")],
    }
    incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    outgoing: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        outgoing.append(message)

    incoming.put_nowait({"type": "http.request", "body": b""})
    await application(scope, incoming.get, send)
    start, body = outgoing
    assert start["status"] == 200
    return bytes(body["body"])


@pytest.mark.urls(__name__)
def test_a_thousand_requests_leave_no_connection_behind(env: WorkerEnv) -> None:
    KVNamespace(KVEntry, env).put_sync("key", 1)
    connection.close()
    application = get_asgi_application()

    async def main() -> set[bytes]:
        seen: set[bytes] = set()
        for _ in range(50):
            targets = ["/async", "/sync"] * 10
            seen |= set(await asyncio.gather(*(request(application, target) for target in targets)))
        return seen

    assert asyncio.run(main()) == {b'{"found": 1, "rows": 1}'}
    busy_threads()
    assert held() == 0
