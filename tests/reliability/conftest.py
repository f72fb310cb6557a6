"""Fixtures of the reliability tests, which take seconds and record their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings

from tests.reliability.installation import Installation, installation
from tests.reliability.results import Result, add

Record = Callable[[str, str], None]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test here: it takes seconds, starts processes on a database, and suffers from a busy machine."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.database)
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Installation]:
    """Yield an installation with one environment."""
    with installation(tmp_path) as made:
        yield made


@pytest.fixture
def record() -> Record:
    """Return a function that records a result: the case and its outcome."""
    engine = str(settings.DATABASES["default"]["ENGINE"])
    database = "SQLite" if engine.endswith("sqlite3") else "PostgreSQL"

    def write(case: str, outcome: str) -> None:
        add(Result(case, database, outcome))

    return write
