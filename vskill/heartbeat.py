"""Heartbeats: each process of a role writes an entry that expires soon after the process dies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

from django.db import Error as AnyDatabaseError

from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace

logger = logging.getLogger(__name__)

INTERVAL: Final = 5.0
TTL: Final = timedelta(seconds=20)
# The roles that this process shows as alive at this moment.
_shown: Final[list[str]] = []


def _prefix(role: str) -> str:
    return f"heartbeat:{role}:"


def process_name() -> str:
    """Return the name of this process, ``host:pid``."""
    return f"{socket.gethostname()}:{os.getpid()}"


@asynccontextmanager
async def heartbeat(
    role: str, environments: Iterable[WorkerEnv], details: Mapping[str, Any] | None = None
) -> AsyncIterator[None]:
    """Show in each environment that a process of ``role`` lives, while the body runs.

    ``details`` are written with each beat, as they are then; /healthz shows them to staff and on this machine.
    """
    told = {} if details is None else details
    served = list(environments)
    _shown.append(role)
    await _beat(role, served, told)
    beating = asyncio.create_task(_beat_for_ever(role, served, told))
    try:
        yield
    finally:
        _shown.remove(role)
        beating.cancel()
        await asyncio.wait([beating])
        for env in served:
            with contextlib.suppress(AnyDatabaseError, VskillError):
                await KVNamespace(KVEntry, env).delete(_prefix(role) + process_name())


async def _beat_for_ever(role: str, environments: list[WorkerEnv], details: Mapping[str, Any]) -> None:
    while True:
        await asyncio.sleep(INTERVAL)
        await _beat(role, environments, details)


async def _beat(role: str, environments: list[WorkerEnv], details: Mapping[str, Any]) -> None:
    for env in environments:
        try:
            await KVNamespace(KVEntry, env).put(
                _prefix(role) + process_name(), {"role": role, "details": dict(details)}, ttl=TTL
            )
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
    """Return the names of the processes of ``role`` that live, and of its work that was done by others lately."""
    prefix = _prefix(role)
    return [key.removeprefix(prefix) async for key in KVNamespace(KVEntry, env).list_all(prefix)]


async def health(env: WorkerEnv, roles: Iterable[str], *, details: bool = False) -> dict[str, Any]:
    """Return, for each role, whether one of its processes lives and which; with ``details`` also what each tells."""
    parts: dict[str, Any] = {}
    for role in roles:
        names = await living(env, role)
        parts[role] = {"alive": bool(names), "processes": names}
        told = {name: await _details(env, _prefix(role) + name) for name in names} if details else {}
        if told := {name: one for name, one in told.items() if one}:
            parts[role]["details"] = told
    return parts


async def _details(env: WorkerEnv, key: str) -> dict[str, Any]:
    value = (await KVNamespace(KVEntry, env).get(key)).value
    found = value.get("details") if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}
