"""Fixtures of the end-to-end tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test here: it starts processes on a database of the kind that this run tests."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.database)


@pytest.fixture(autouse=True)
def data_dir(settings: Settings, tmp_path: Path) -> Path:
    """Give each test its own data directory, so that anything left in it comes from this test."""
    settings.DATA_DIR = tmp_path / "data-directory"
    settings.DATA_DIR.mkdir()
    return tmp_path / "data-directory"


@pytest.fixture(autouse=True)
def _queue_that_asks_often(settings: Settings) -> None:
    # The defaults poll every second and wait five seconds for a batch to fill.
    settings.QUEUE_POLL_INTERVAL = 0.02
    settings.QUEUE_MAX_BATCH_WAIT = 0.0
