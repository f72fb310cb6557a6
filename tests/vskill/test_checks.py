"""Settings that contradict each other are refused at start-up, each with an id and a hint."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.core import checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import override_settings

from vskill.checks import check_environments, check_pool, check_proxies


def ids(messages: list[checks.CheckMessage]) -> list[str | None]:
    return [message.id for message in messages]


def pooled(pool: dict[str, int] | bool) -> dict[str, dict[str, Any]]:
    return {"default": {"ENGINE": "django.db.backends.postgresql", "OPTIONS": {"pool": pool}}}


@pytest.mark.database
def test_the_settings_as_delivered_pass() -> None:
    assert check_environments(None) == []
    assert check_pool(None) == []


@pytest.mark.database
def test_both_checks_run_at_start_up() -> None:
    with override_settings(KV_READ_WORKERS=0), pytest.raises(SystemCheckError, match=r"vskill\.E005"):
        call_command("check")
    with override_settings(VSKILL_ENVIRONMENTS={"a b": {}}), pytest.raises(SystemCheckError, match=r"vskill\.E001"):
        call_command("check")


@pytest.mark.database
def test_a_command_that_cron_starts_refuses_settings_as_check_does() -> None:
    with override_settings(KV_READ_WORKERS=0), pytest.raises(SystemCheckError, match=r"vskill\.E005"):
        call_command("queue_status", skip_checks=False)


def test_a_server_that_believes_everybody_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_proxies(None) == []
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    assert ids(check_proxies(None)) == ["vskill.W002"]


def test_an_environment_that_cannot_be_built_is_an_error() -> None:
    with override_settings(VSKILL_ENVIRONMENTS={"one": {"host": []}}):
        assert ids(check_environments(None)) == ["vskill.E001"]


def test_a_database_that_is_not_configured_is_an_error() -> None:
    with override_settings(VSKILL_ENVIRONMENTS={"one": {"database": "nowhere"}}):
        assert ids(check_environments(None)) == ["vskill.E002"]


def test_a_host_of_two_environments_is_an_error_and_a_host_given_twice_is_not() -> None:
    with override_settings(VSKILL_ENVIRONMENTS={"one": {"hosts": ["a", "A"]}, "two": {"hosts": ["A", "b"]}}):
        assert ids(check_environments(None)) == ["vskill.E003"]


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        ({"max_size": 9}, []),
        ({"max_size": 8}, ["vskill.E004"]),
        ({"min_size": 9}, []),
        ({}, []),
        ({"min_size": 1}, ["vskill.E004"]),
        (True, ["vskill.E004"]),
    ],
    ids=["one each", "one too few", "minimum as size", "no pool", "a small minimum", "the driver's own size"],
)
def test_a_pool_has_a_connection_for_each_thread(
    monkeypatch: pytest.MonkeyPatch, pool: dict[str, int] | bool, expected: list[str]
) -> None:
    monkeypatch.setattr(settings, "DATABASES", pooled(pool))
    with override_settings(KV_READ_WORKERS=4, KV_WRITE_WORKERS=4):
        assert ids(check_pool(None)) == expected


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"KV_READ_WORKERS": 0}, ["vskill.E005"]),
        ({"KV_WRITE_WORKERS": 0}, ["vskill.E005"]),
        ({"KV_READ_TIMEOUT": 0.0}, ["vskill.E006"]),
    ],
    ids=["readers", "writers", "timeout"],
)
def test_numbers_that_let_nothing_happen_are_refused(changed: dict[str, Any], expected: list[str]) -> None:
    with override_settings(**changed):
        assert ids(check_pool(None)) == expected
