"""Skip what needs semgrep where it is not installed."""

from __future__ import annotations

import os

import pytest
from django.conf import settings


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests that run semgrep, with the reason, where `make engines` was not run."""
    if os.access(settings.SEMGREP, os.X_OK):
        return
    for item in items:
        if "semgrep" in item.path.name and item.get_closest_marker("engines"):
            item.add_marker(pytest.mark.skip(reason=f"not installed: {settings.SEMGREP} (make engines)"))
