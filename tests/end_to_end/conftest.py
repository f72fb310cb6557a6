"""What the end-to-end tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings


@pytest.fixture(autouse=True)
def data_dir(settings: Settings, tmp_path: Path) -> Path:
    """Give each test a data directory of its own, so that what is left in it was left by this test."""
    settings.DATA_DIR = tmp_path / "data-directory"
    settings.DATA_DIR.mkdir()
    return tmp_path / "data-directory"


@pytest.fixture(autouse=True)
def _queue_that_asks_often(settings: Settings) -> None:
    # The same code with shorter pauses: a poll each second and five seconds for a batch to fill are for operation.
    settings.QUEUE_POLL_INTERVAL = 0.02
    settings.QUEUE_MAX_BATCH_WAIT = 0.0
