"""Heartbeats: each process of a role writes an entry that expires soon after the process dies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

from django.db import Error as AnyDatabaseError

from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.threads import DatabaseThreads, readers
from vskill.visitors.reads import VisitorReads

logger = logging.getLogger(__name__)

INTERVAL: Final = 5.0
TTL: Final = timedelta(seconds=20)
# Anybody can ask for health, so it has threads and a deadline like a page, but those of no page.
health_reads: Final = VisitorReads(DatabaseThreads("health-read", lambda: 2))
"""The threads on which /healthz reads."""
# The roles that this process shows as alive at this moment.
_shown: Final[list[str]] = []


def _prefix(role: str) -> str:
    return f"heartbeat:{role}:"


def process_name() -> str:
    """Return the name of this process, ``host:pid``."""
    return f"{socket.gethostname()}:{os.getpid()}"


@asynccontextmanager
async def heartbeat(
    role: str,
    environments: Iterable[WorkerEnv],
    *,
    fault: Callable[[], str] = lambda: "",
    details: Mapping[str, Any] | None = None,
) -> AsyncIterator[None]:
    """Write a heartbeat of this process as ``role`` in each environment every ``INTERVAL`` seconds while the body runs.

    ``fault`` says why the process does no work although it is alive, and is empty while it does. ``details`` are facts
    about the machine of the process. /healthz shows both to staff and on this machine. The entries are deleted at the
    end. A failed write is logged and not raised.
    """

    def value() -> dict[str, Any]:
        return {"role": role, "fault": fault()[:500], "details": dict(details or {})}

    served = list(environments)
    _shown.append(role)
    await _beat(role, served, value())
    beating = asyncio.create_task(_beat_repeatedly(role, served, value))
    try:
        yield
    finally:
        _shown.remove(role)
        beating.cancel()
        await asyncio.wait([beating])
        for env in served:
            with contextlib.suppress(AnyDatabaseError, VskillError):
                await KVNamespace(KVEntry, env).delete(_prefix(role) + process_name())


async def _beat_repeatedly(role: str, environments: list[WorkerEnv], value: Callable[[], dict[str, Any]]) -> None:
    while True:
        await asyncio.sleep(INTERVAL)
        await _beat(role, environments, value())


async def _beat(role: str, environments: list[WorkerEnv], value: dict[str, Any]) -> None:
    for env in environments:
        try:
            await KVNamespace(KVEntry, env).put(_prefix(role) + process_name(), value, ttl=TTL)
        except (AnyDatabaseError, VskillError) as error:
            # The next beat tries again. A process that cannot write for longer looks dead, as it should.
            logger.warning("no sign of life could be written in %s: %s", env.name, error)


async def show_work_done(role: str, env: WorkerEnv, work: str, ttl: timedelta) -> None:
    """Show for ``ttl`` that ``work`` of ``role`` was done in ``env``, by a process that starts for it and ends.

    Within ``heartbeat`` of the same role it shows nothing: a process that runs on is dead soon after its last beat,
    whatever it has done before.
    """
    if role in _shown:
        return
    name = f"{socket.gethostname()}:{work}"
    try:
        await KVNamespace(KVEntry, env).put(_prefix(role) + name, {"role": role}, ttl=ttl)
    except (AnyDatabaseError, VskillError) as error:
        logger.warning("it could not be shown in %s that %s was done: %s", env.name, work, error)


async def living(env: WorkerEnv, role: str) -> list[str]:
    """Return the names of the processes of ``role`` that live; see ``living_sync``."""
    return await readers.run(living_sync, env, role)


def living_sync(env: WorkerEnv, role: str) -> list[str]:
    """Return the names of the processes of ``role`` that live, and of its work that was done by others lately."""
    return list(_values(env, role))


async def health(env: WorkerEnv, roles: Iterable[str], *, details: bool = False) -> dict[str, Any]:
    """Return for each role ``{"alive": bool}``, by the heartbeats in ``env``.

    ``alive`` says that one of the processes is alive and works. With ``details`` there are also the names of the
    ``processes``, what each says of its machine, and in ``faults`` why some do no work.
    """
    return await health_reads.run(_health, env, tuple(roles), details)


def _health(env: WorkerEnv, roles: tuple[str, ...], details: bool) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    for role in roles:
        values = _values(env, role)
        faults = {name: value["fault"] for name, value in values.items() if value.get("fault")}
        facts = {name: value["details"] for name, value in values.items() if value.get("details")}
        parts[role] = {"alive": len(faults) < len(values)}
        if details:
            parts[role] |= {"processes": list(values)}
            parts[role] |= {name: found for name, found in (("faults", faults), ("details", facts)) if found}
    return parts


def _values(env: WorkerEnv, role: str) -> dict[str, dict[str, Any]]:
    prefix = _prefix(role)
    outcomes = KVNamespace(KVEntry, env).get_all_sync(prefix)
    found = {one.key.removeprefix(prefix): one.value for one in outcomes if one.found}
    return {name: value if isinstance(value, dict) else {} for name, value in found.items()}
