"""Contradictory settings are refused at start-up, and the shipped ones are accepted."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import Settings

from submissions.checks import check_connections, check_engines, check_queue, check_sqlite

pytestmark = pytest.mark.database


def ids(settings: Settings, **values: Any) -> list[str | None]:
    """Return the ids of the problems with these settings."""
    for name, value in values.items():
        setattr(settings, name, value)
    return [message.id for check in (check_queue, check_connections, check_sqlite) for message in check(None)]


def test_what_is_shipped_contradicts_nothing(settings: Settings) -> None:
    assert ids(settings) == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"QUEUE_LEASE": 44.0, "QUEUE_HEARTBEAT": 15.0}, "submissions.E002"),
        ({"QUEUE_MESSAGE_LIMIT": 60.0, "FETCH_SECONDS": 60.0, "QUEUE_LEASE": 45.0}, "submissions.E003"),
        ({"QUEUE_MESSAGE_LIMIT": 89.0}, "submissions.E004"),
        ({"QUEUE_POLL_INTERVAL": 91.0}, "submissions.E005"),
        ({"SCAN_PROCESSES": 31}, "submissions.W001"),
    ],
)
def test_pairs_that_would_lose_leases_or_work_are_refused(
    settings: Settings, values: dict[str, Any], expected: str
) -> None:
    assert ids(settings, **values) == [expected]


@pytest.mark.parametrize(
    ("values", "nothing"),
    [
        ({"QUEUE_LEASE": 45.0, "QUEUE_HEARTBEAT": 15.0}, []),
        ({"QUEUE_MESSAGE_LIMIT": 90.0}, []),
        ({"SCAN_PROCESSES": 30}, []),
        ({"QUEUE_MAX_BATCH_WAIT": 0.0, "QUEUE_SHUTDOWN_GRACE": 0.0, "RECOVERY_MAX_ATTEMPTS": 0}, []),
    ],
)
def test_the_edge_of_what_goes_together_is_accepted(
    settings: Settings, values: dict[str, Any], nothing: list[str]
) -> None:
    assert ids(settings, **values) == nothing


@pytest.mark.parametrize(
    "values",
    [
        {"QUEUE_MAX_BATCH_SIZE": 0},
        {"QUEUE_MAX_CONCURRENCY": -1},
        {"FETCH_PROCESSES": 0},
        {"QUEUE_LEASE": 0.0},
        {"QUEUE_MAX_CRASHES": 0},
        {"QUEUE_SHUTDOWN_GRACE": -1.0},
        {"QUEUE_BACKOFF": []},
        {"QUEUE_BACKOFF": [10.0, -1.0]},
        {"SCAN_PROCESSES": 0},
    ],
    ids=str,
)
def test_numbers_that_cannot_be_are_refused(settings: Settings, values: dict[str, Any]) -> None:
    assert ids(settings, **values) == ["submissions.E001"]


@pytest.mark.parametrize(("size", "expected"), [(9, ["submissions.E007"]), (10, []), (None, [])])
def test_a_pool_has_a_connection_for_the_renewal_of_leases(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, size: int | None, expected: list[str]
) -> None:
    pool = {"max_size": size} if size else False
    monkeypatch.setitem(settings.DATABASES["default"], "OPTIONS", {"pool": pool})
    assert ids(settings, KV_READ_WORKERS=4, KV_WRITE_WORKERS=4) == expected


def test_a_sqlite_without_returning_is_refused(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django.db.backends.sqlite3")
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 34, 1))
    assert ids(settings) == ["submissions.E006"]


@pytest.mark.parametrize(
    ("engine", "hint"),
    [("skilltotl", "Did you mean skilltotal?"), ("husk", "Known engines: adviser, cisco, skilltotal, vskill.")],
)
def test_an_engine_that_does_not_exist_is_refused_with_the_nearest_one(
    settings: Settings, engine: str, hint: str
) -> None:
    assert check_engines(None) == []
    settings.VSKILL_ENVIRONMENTS = {"default": {"hosts": ["*"], "policy": {"tier1_engines": [engine]}}}
    [problem] = check_engines(None)
    assert (problem.id, problem.hint) == ("submissions.E008", hint)
