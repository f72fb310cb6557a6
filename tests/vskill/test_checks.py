"""Settings that contradict each other are refused at start-up, each with an id and a hint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core import checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import override_settings

from vskill.accounts.teams import create_team
from vskill.checks import check_audiences, check_environments, check_pool, check_proxies
from vskill.configuration import BASE_DIR
from vskill.environments import get_environment


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


@pytest.mark.django_db
def test_a_policy_that_names_a_team_which_is_not_there_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {
        "policy": {
            "audiences": {"git.corp.example": "members", "git.corp.example/hr": "hr", "git.corp.example/it": "it"},
            "source_credentials": {"git.corp.example": {"kind": "token", "secret": "one"}},
            "credential_audience": "staff",
        },
        "secrets": {"one": "ONE"},
    }
    monkeypatch.setenv("ONE", "abcdefgh1")
    with override_settings(VSKILL_ENVIRONMENTS={"one": options}):
        create_team(get_environment("one"), "it")
        found = check_audiences(None)
        assert ids(found) == ["vskill.W004", "vskill.W004"]
        assert ["'hr'" in str(one.msg) or "'staff'" in str(one.msg) for one in found] == [True, True]
        assert "manage.py team create hr" in str(found[0].hint)
        for name in ("hr", "staff"):
            create_team(get_environment("one"), name)
        assert check_audiences(None) == []


@pytest.mark.database
def test_a_policy_with_a_team_is_checked_before_there_is_a_database_and_makes_none(tmp_path: Path) -> None:
    rules = {"default": {"policy": {"audiences": {"git.corp.example": "hr"}}}}

    def checked(command: str) -> str:
        given = {"VSKILL_DATA_DIR": str(tmp_path), "DATABASE_URL": "", "VSKILL_ENVIRONMENTS": json.dumps(rules)}
        words = [sys.executable, "manage.py", command]
        ended = subprocess.run(words, cwd=BASE_DIR, env={**os.environ, **given}, capture_output=True, text=True)
        assert (ended.returncode, "Traceback" in ended.stderr) == (0, False), ended.stderr
        return ended.stderr

    assert "vskill.W004" not in checked("check")
    assert not [one for one in tmp_path.iterdir() if "sqlite" in one.name]
    # Without tables, and with those in which no team is.
    database = tmp_path / "vskill.sqlite3"
    database.touch(0o600)
    assert "vskill.W004" not in checked("check")
    checked("migrate")
    assert "vskill.W004" in checked("check")
