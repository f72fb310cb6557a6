"""What the end-to-end tests share."""

from __future__ import annotations

import pytest
from pytest_django import Settings


@pytest.fixture(autouse=True)
def _queue_that_asks_often(settings: Settings) -> None:
    # The same code with shorter pauses: a poll each second and five seconds for a batch to fill are for operation.
    settings.QUEUE_POLL_INTERVAL = 0.02
    settings.QUEUE_MAX_BATCH_WAIT = 0.0
