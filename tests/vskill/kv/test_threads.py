"""Threads for database work: one that cannot be started leaves nobody waiting for ever."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from vskill.kv.threads import DatabaseThreads


@pytest.fixture
def threads() -> Iterator[DatabaseThreads]:
    made = DatabaseThreads("test", lambda: 2)
    yield made
    made.close()


def refuse(_thread: Any) -> None:
    raise RuntimeError("can't start new thread")


def test_work_for_which_no_thread_can_be_started_is_refused_and_the_next_is_done(
    threads: DatabaseThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            threads.submit(done.append, "refused")
    threads.submit(done.append, "done").result(timeout=30)
    assert done == ["done"]


def test_a_thread_that_is_there_takes_the_work_of_one_that_cannot_be_started(
    threads: DatabaseThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy, begun = threading.Event(), threading.Event()

    def occupy() -> None:
        begun.set()
        busy.wait()

    first = threads.submit(occupy)
    begun.wait()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        second = threads.submit(lambda: "done")
    busy.set()
    first.result(timeout=30)
    assert second.result(timeout=30) == "done"
