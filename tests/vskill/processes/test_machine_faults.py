"""Faults of a machine are told from faults of a piece of work, however deep they lie under other errors."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

import pytest
from django.db import OperationalError

from vskill.processes.machine_faults import MachineFault, fault_of_child, machine_fault, probe_machine


def caused_by(cause: BaseException) -> Exception:
    try:
        try:
            raise cause
        except BaseException as error:
            raise OperationalError("something failed") from error
    except OperationalError as error:
        return error


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN]
)
def test_an_error_of_the_system_that_no_work_can_cause_is_a_fault(number: int) -> None:
    error = OSError(number, os.strerror(number))
    assert machine_fault(error) == os.strerror(number)
    assert machine_fault(caused_by(error)) == os.strerror(number)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("can't start new thread"),
        FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']"),
        MachineFault("git could not work"),
    ],
    ids=repr,
)
def test_threads_memory_and_temporary_folders_are_faults_too(error: Exception) -> None:
    assert machine_fault(error)
    assert machine_fault(caused_by(error))


@pytest.mark.parametrize(
    "error",
    [
        None,
        ValueError("bad"),
        FileNotFoundError(errno.ENOENT, "no such file"),
        PermissionError(errno.EACCES, "denied"),
        RuntimeError("something else"),
        OSError(errno.EFBIG, "file too large"),
        OperationalError("database is locked"),
    ],
    ids=repr,
)
def test_other_errors_are_none(error: Exception | None) -> None:
    assert machine_fault(error) is None


def test_a_full_disk_under_sqlite_is_a_fault(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "full.sqlite3")
    connection.execute("PRAGMA max_page_count=2")
    connection.execute("CREATE TABLE one (value)")
    with pytest.raises(sqlite3.OperationalError) as raised:
        connection.execute("INSERT INTO one VALUES (zeroblob(100000))")
    connection.close()
    assert machine_fault(caused_by(raised.value)) == "SQLite: database or disk is full"


def test_a_child_says_what_ails_the_machine_and_not_what_ails_the_other_side() -> None:
    assert fault_of_child(b"fatal: write error: No space left on device\n") == (
        "fatal: write error: No space left on device"
    )
    assert fault_of_child(b"remote: fatal: No space left on device\n") is None
    # A server may say several lines, and end them in its own ways.
    for said in (
        b"fatal: remote error: x\nNo space left on device\n",
        "remote: x\u2028No space left on device\n".encode(),
    ):
        assert fault_of_child(said) is None
    assert fault_of_child(b"fatal: Out of memory, malloc failed\n") is None


def test_a_probe_leaves_nothing_behind_and_raises_what_is_wrong(tmp_path: Path) -> None:
    probe_machine(tmp_path / "made")
    assert list((tmp_path / "made").iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="Not a directory"):
        probe_machine(tmp_path / "file" / "below")
