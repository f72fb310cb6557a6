"""A database that really is not there: a port where nobody listens, a folder that does not exist."""

from __future__ import annotations

import copy
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connections

ALIAS = "absent"


def dead_port() -> int:
    """Return a port of the loopback address where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def unreadable_file(folder: Path) -> dict[str, Any]:
    """Return the settings of a SQLite file in a folder that does not exist."""
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": str(folder / "missing" / "vskill.sqlite3")}


def dead_server() -> dict[str, Any]:
    """Return the settings of a PostgreSQL server that does not run."""
    address = {"HOST": "127.0.0.1", "PORT": str(dead_port()), "USER": "nobody", "PASSWORD": "", "NAME": "nothing"}
    return {"ENGINE": "vskill.postgresql", **address}


@contextmanager
def absent_database(settings: dict[str, Any]) -> Iterator[str]:
    """Configure one more database of that address for the time of the body and yield its alias."""
    complete = copy.deepcopy(connections.settings["default"])
    connections.settings[ALIAS] = {**complete, "OPTIONS": {}, **settings}
    try:
        yield ALIAS
    finally:
        connections[ALIAS].close()
        del connections[ALIAS]
        del connections.settings[ALIAS]
