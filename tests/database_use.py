"""Which tests depend on the database of the run, and a seal around those that say they do not.

A test depends on it with the mark ``django_db``, with a fixture of pytest-django that opens it, or with the mark
``database``, which is for processes that a test starts and for what reads the settings of databases. Any other test is
sealed: whatever asks for the database fails. So a test that passed has the same result on every database, and may be
left out of the runs on the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

import pytest
from django.conf import settings
from django.db.utils import ConnectionHandler

MARKS: Final = ("django_db", "database")
FIXTURES: Final = frozenset({"_django_db_helper", "django_db_setup", "live_server"})
# What a process would connect to that inherits the environment: a file below something that is no folder.
NOWHERE: Final = "sqlite:////dev/null/none.sqlite3"


class DependsOnTheDatabase(Exception):
    """Raised in a sealed test for whatever asks for the database of the run."""

    def __init__(self, asked: str) -> None:
        super().__init__(
            f"This test asked for {asked}, and is not marked as one that depends on the database, so the runs on other "
            "databases would leave it out. Mark it django_db if it uses the tests' own database, or else database."
        )


def depends_on_the_database(item: pytest.Item) -> bool:
    """Return whether a test may behave differently on another database; what is no function of pytest may."""
    if not isinstance(item, pytest.Function):
        return True
    return any(item.get_closest_marker(mark) for mark in MARKS) or not FIXTURES.isdisjoint(item.fixturenames)


@contextmanager
def sealed() -> Iterator[None]:
    """Refuse connections, their properties and their settings, and lead processes nowhere, while the body runs."""

    def refuse_connection(_handler: ConnectionHandler, alias: str) -> Any:
        raise DependsOnTheDatabase(f"the connection {alias!r}")

    with (
        _processes_led_nowhere(),
        _refused_settings(),
        patch.object(ConnectionHandler, "__getitem__", refuse_connection),
        patch.object(ConnectionHandler, "all", _all_of_this_thread),
    ):
        yield


@contextmanager
def _processes_led_nowhere() -> Iterator[None]:
    # Of the other variables, what a fixture has set stays until the test has ended.
    before = os.environ.get("DATABASE_URL")
    os.environ["DATABASE_URL"] = NOWHERE
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("DATABASE_URL", None)
        else:
            os.environ["DATABASE_URL"] = before


@contextmanager
def _refused_settings() -> Iterator[None]:
    # On the very object that holds them: what overrides settings until another step of the test puts one before it,
    # and would be given back what this one held, which would then refuse for good.
    holder: Any = settings._wrapped  # type: ignore[misc]  # the stubs know no object behind the settings
    try:
        with patch.object(holder, "DATABASES", _Refused(settings.DATABASES)):
            # What Django remembers of it.
            settings.__dict__.pop("DATABASES", None)
            yield
    finally:
        settings.__dict__.pop("DATABASES", None)


class _Refused(dict[str, Any]):
    """The settings of the databases; their names may be read."""

    def __getitem__(self, alias: str) -> Any:
        raise DependsOnTheDatabase(f"settings.DATABASES[{alias!r}]")

    def get(self, alias: str, default: Any = None) -> Any:
        raise DependsOnTheDatabase(f"settings.DATABASES[{alias!r}]")

    def items(self) -> Any:
        raise DependsOnTheDatabase("settings.DATABASES")

    def values(self) -> Any:
        raise DependsOnTheDatabase("settings.DATABASES")


def _all_of_this_thread(handler: ConnectionHandler, initialized_only: bool = False) -> list[Any]:
    # Django asks for them at the start and the end of each request, to close what was opened.
    if not initialized_only:
        raise DependsOnTheDatabase("all connections")
    opened = handler._connections  # type: ignore[attr-defined]  # the stubs leave out what is private
    return [getattr(opened, alias) for alias in handler if hasattr(opened, alias)]
