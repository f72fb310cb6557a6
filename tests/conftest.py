"""What every test has: coroutine tests, property tests without a deadline, environments, threads that are ended."""

from __future__ import annotations

import gc
import inspect
import signal
from collections.abc import Generator
from contextlib import AbstractContextManager, nullcontext

import pytest
from asgiref.sync import async_to_sync
from hypothesis import settings

from tests import thread_connections
from tests.database_use import depends_on_the_database, sealed
from tests.durations import longest_first
from tests.emptied_tables import empty_what_was_written
from tests.static_files import find_static_files_once
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.threads import close_database_threads

# A machine that does something else at the same time is slow; that is no fault of what is tested.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

# Marks of tests that take seconds each.
TAKES_SECONDS = ("browser", "clients", "realinput", "slow")


def pytest_configure() -> None:
    """Let Ctrl-C reach what tests start, watch the connections of threads, and empty tables and find files cheaply.

    A shell that runs the tests in its background hands Ctrl-C down as ignored. The garbage collector waits until the
    tests are collected.
    """
    gc.disable()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    thread_connections.watch()
    empty_what_was_written()
    find_static_files_once()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest modules first, and after them those with slow tests that nobody has measured."""
    slow = {item.path for item in items if any(item.get_closest_marker(mark) for mark in TAKES_SECONDS)}
    items.sort(key=lambda item: item.path not in slow)
    longest_first(items)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Take what was collected out of the garbage collector's sight; it lives as long as the process.

    Otherwise each full collection walks over all tests of the suite, and a sixth of the processor time goes into that.
    """
    gc.collect()
    gc.freeze()
    gc.enable()


def _seal_of(item: pytest.Item) -> AbstractContextManager[None]:
    return nullcontext() if depends_on_the_database(item) else sealed()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Seal the fixtures of a test that does not say that it depends on the database."""
    with _seal_of(item):
        yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Seal such a test."""
    with _seal_of(item):
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test as a management command runs its work, so that its connections are closed as there."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    async_to_sync(pyfuncitem.obj)(**{name: pyfuncitem.funcargs[name] for name in names})
    return True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """Wait for what a test left to the database threads, such as a download to count, before its tables are emptied.

    On PostgreSQL emptying takes the locks of all tables at once, and met the one who counted in a deadlock. A test
    fails that leaves a connection of another thread open.
    """
    close_database_threads()
    threads = thread_connections.left_open()
    # After the last test its database is deleted, whatever that test was.
    with _seal_of(item) if nextitem else nullcontext():
        yield
    assert not threads, f"these threads left a connection to the database open: {threads}"


@pytest.fixture
def env() -> WorkerEnv:
    """Return the environment that the test server's host chooses."""
    return get_environment("default")
