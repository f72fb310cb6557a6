"""Ask an instance on this machine whether everything lives, under a host name that it answers to."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from typing import Final

from vskill.environments import WorkerEnv
from vskill.errors import VskillError

# Longer than a page waits for a connection to a database that is away.
ANSWER_SECONDS: Final = 12.0
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


class NotServed(VskillError):
    """The server does not answer to a host name that its settings list."""

    code = "not_served"


def served_name(env: WorkerEnv) -> str | None:
    """Return a host name that ``env`` answers to, loopback where it may be; ``None`` where it has no host."""
    if "*" in env.hosts:
        return _LOOPBACK[0]
    return next((name for name in (*_LOOPBACK, *env.hosts) if name in env.hosts), None)


class HealthProbe:
    """Asks /healthz of the server at ``host`` and ``port``, in each of ``environments`` that has a host name.

    Without any host name it asks as ``host``, which the server then refuses.
    """

    def __init__(self, host: str, port: int, environments: Iterable[WorkerEnv]) -> None:
        self._host, self._port = host.strip("[]"), port
        self._names = [name for env in environments if (name := served_name(env)) is not None] or [host]

    def dead_parts(self) -> list[str]:
        """Return the names of the parts that do not live yet, empty once all of them do.

        Raises ``NotServed`` where the server refuses one of the names.
        """
        for name in self._names:
            if dead := self._ask(name):
                return dead
        return []

    def _ask(self, name: str) -> list[str]:
        # Not urllib, which would ask a proxy that the environment names.
        try:
            with closing(HTTPConnection(self._host, self._port, timeout=ANSWER_SECONDS)) as connection:
                connection.request("GET", "/healthz", headers={"Host": f"{name}:{self._port}"})
                response = connection.getresponse()
                status, body = response.status, response.read()
        except (OSError, HTTPException):
            return ["web"]
        if status == 421:
            raise NotServed(
                f"The web server does not answer to the host name {name!r}. Correct VSKILL_HOSTS, or 'hosts' in "
                "VSKILL_ENVIRONMENTS."
            )
        return _dead_parts(status, body)


def _dead_parts(status: int, body: bytes) -> list[str]:
    if status == 200:
        return []
    if status != 503:
        return [f"web (it answers {status})"]
    try:
        return [str(name) for name in json.loads(body)["dead"]] or ["web"]
    except (ValueError, LookupError, TypeError):
        # The page that says so is written for people.
        return ["database"]
