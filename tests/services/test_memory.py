"""Temporary files are in memory only where there is room for them and nobody has chosen a place, and go afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.services import memory
from tests.services.memory import has_room, temporary_files


@pytest.fixture(autouse=True)
def _no_place_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", None)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a folder that stands for the memory, with room whatever this machine has."""
    monkeypatch.setattr(memory, "IN_MEMORY", tmp_path)
    monkeypatch.setattr(memory, "ROOM", 0)
    return tmp_path


def test_this_process_and_those_it_starts_write_there_and_nothing_is_left(place: Path) -> None:
    asks = "import tempfile; print(tempfile.gettempdir(), end='')"
    with temporary_files():
        folder = Path(tempfile.mkdtemp())
        assert folder.parent.parent == place
        # Another account, such as that of a server, makes its files there too.
        assert folder.parent.stat().st_mode & 0o7777 == 0o1777
        started = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True)
        assert Path(started.stdout) == folder.parent
    assert list(place.iterdir()) == []
    assert "TMPDIR" not in os.environ
    assert not Path(tempfile.gettempdir()).is_relative_to(place)


def test_a_chosen_place_stays(
    place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    chosen = tmp_path_factory.mktemp("chosen")
    monkeypatch.setenv("TMPDIR", str(chosen))
    with temporary_files():
        assert Path(tempfile.gettempdir()) == chosen


def test_without_room_the_place_is_the_usual_one(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "ROOM", 2**60)
    usual = tempfile.gettempdir()
    with temporary_files():
        assert tempfile.gettempdir() == usual
    assert list(place.iterdir()) == []


def test_a_folder_that_is_missing_has_no_room(place: Path) -> None:
    assert has_room(place)
    assert not has_room(place / "missing")
