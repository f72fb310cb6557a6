"""Connections that a test opened in a thread, which has to close them before the test ends.

A thread that ends leaves its connections to the garbage collector. Until that runs, their sessions are open, and
PostgreSQL refuses to drop the database at the end of the run.
"""

from __future__ import annotations

import threading
from typing import Any, Final
from weakref import WeakKeyDictionary

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

_opened_by: Final[WeakKeyDictionary[BaseDatabaseWrapper, threading.Thread]] = WeakKeyDictionary()


def watch() -> None:
    """Begin to remember which thread opens which connection."""
    connection_created.connect(_remember, dispatch_uid=__name__)


def _remember(*, connection: BaseDatabaseWrapper, **_kwargs: Any) -> None:
    thread = threading.current_thread()
    if thread is not threading.main_thread():
        _opened_by[connection] = thread


def left_open() -> list[str]:
    """Close the connections of other threads than the main one that are open, and return the names of the threads."""
    left = []
    for connection, thread in list(_opened_by.items()):
        if connection.connection is not None:
            left.append(thread.name)
            connection.inc_thread_sharing()
            connection.close()
            connection.dec_thread_sharing()
    return left
