"""A management command works in the environments that it was asked for, and gives its connections back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings

from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.management.environment_command import EnvironmentCommand
from vskill.worker_context import get_worker_env

TWO = {"public": {"hosts": ["a"]}, "internal": {"hosts": ["b"]}}


class OfOne(EnvironmentCommand):
    """Remember the environments that work was done in."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[WorkerEnv | None] = []

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> int:
        """Look at the database from a thread, as the ORM does, and remember the scope that it had there."""
        self.seen.append(await sync_to_async(get_worker_env)())
        return await KVEntry.objects.acount()


class OfAll(OfOne):
    """Do the same in every environment."""

    all_by_default = True


def names(command: OfOne) -> list[str]:
    return [env.name for env in command.seen if env is not None]


pytestmark = pytest.mark.django_db(transaction=True)


def test_the_environment_that_was_named_is_the_current_one() -> None:
    command = OfOne()
    with override_settings(VSKILL_ENVIRONMENTS=TWO):
        call_command(command, "--environment", "internal")
    assert names(command) == ["internal"]
    assert get_worker_env() is None


def test_an_environment_that_is_not_there_ends_the_command_with_the_names_of_those_that_are() -> None:
    command = OfOne()
    with override_settings(VSKILL_ENVIRONMENTS=TWO), pytest.raises(CommandError, match="public, internal"):
        call_command(command, environment="staging")
    assert command.seen == []


def test_the_only_environment_needs_no_name() -> None:
    command = OfOne()
    call_command(command)
    assert names(command) == ["default"]


def test_one_of_several_is_never_guessed() -> None:
    command = OfOne()
    with override_settings(VSKILL_ENVIRONMENTS=TWO), pytest.raises(CommandError, match="--environment"):
        call_command(command)
    assert command.seen == []


def test_a_command_for_every_environment_works_in_each_of_them() -> None:
    command = OfAll()
    with override_settings(VSKILL_ENVIRONMENTS=TWO):
        call_command(command)
    assert names(command) == ["public", "internal"]


def test_the_result_of_the_work_comes_back() -> None:
    command = OfOne()
    env = WorkerEnv(name="elsewhere")
    assert command.run_in(env, {}) == 0
    assert command.seen == [env]


def test_a_command_holds_no_connection_after_it_ended() -> None:
    connection.close()
    call_command(OfOne())
    assert connection.connection is None


def test_a_command_that_failed_holds_none_either() -> None:
    class Failing(OfOne):
        """Fail after reading."""

        async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> int:
            """Read, then fail."""
            await super().work(env, options)
            raise LookupError(env.name)

    connection.close()
    with pytest.raises(LookupError, match="default"):
        call_command(Failing())
    assert connection.connection is None


def test_the_connection_of_its_caller_stays_open() -> None:
    connection.ensure_connection()
    call_command(OfOne())
    assert connection.connection is not None
