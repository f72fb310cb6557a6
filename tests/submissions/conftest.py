"""Fixtures for tests that fetch."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings


@pytest.fixture
def own_data_folder(settings: Settings, tmp_path: Path) -> None:
    """Fetch into a folder of the test, so that anything left in it comes from this test."""
    settings.DATA_DIR = tmp_path / "data"
