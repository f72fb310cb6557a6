"""manage.py recover_stuck: its exit codes, what it prints for people and for programs, and its lock."""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.core.management import CommandError
from django.test import AsyncClient
from pytest_django import Settings

from submissions.models import QueueMessage, RecoverySweep
from submissions.states import State
from tests.submissions.commands.run import Ended, help_of, run
from tests.submissions.factories import damage, make_submission, make_submissions
from tests.submissions.refusals import inserts_refused
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.models import KVEntry
from vskill.management.commands.schedule import run_command
from vskill.processes.heartbeat import heartbeat, living
from vskill.processes.run_lock import run_lock

pytestmark = pytest.mark.django_db(transaction=True)
LONG_AGO = timedelta(minutes=30)


def test_nothing_to_do_is_0_and_one_line(env: WorkerEnv) -> None:
    assert run("recover_stuck") == Ended(0, "default: nothing is stuck (0 read)\n", "")


def test_what_was_put_back_is_0_and_one_summary_line(env: WorkerEnv) -> None:
    make_submissions(env, 3, age=LONG_AGO)
    make_submission(env, age=LONG_AGO, message=True)
    ended = run("recover_stuck")
    assert (ended.code, ended.out) == (0, "default: 3 recovered, 1 on its way (3 read)\n")


def test_cron_hears_nothing_of_a_success_and_all_of_a_failure(env: WorkerEnv) -> None:
    assert run("recover_stuck", "-v", "0") == Ended(0, "", "")
    make_submissions(env, 2, age=LONG_AGO)
    assert run("recover_stuck", "-v", "0") == Ended(0, "", "")
    assert QueueMessage.objects.count() == 2
    [broken] = make_submissions(env, 1, age=LONG_AGO)
    damage(env, broken)
    ended = run("recover_stuck", "-v", "0")
    assert (ended.code, ended.out) == (3, "default: 1 malformed (0 read)\n")


def health() -> tuple[int, list[str], dict[str, Any]]:
    """Return the status of /healthz beside a consumer, the dead parts, and what is said of the scheduler."""

    async def asked() -> tuple[int, list[str], dict[str, Any]]:
        async with heartbeat("consumer", [get_environment("default")]):
            response = await AsyncClient().get("/healthz")
            document = response.json()
            return response.status_code, document["dead"], document["parts"]["scheduler"]

    return async_to_sync(asked)()


def test_where_cron_sweeps_no_scheduler_is_missed(env: WorkerEnv) -> None:
    assert health()[:2] == (503, ["scheduler"])
    run("recover_stuck", "--dry-run")
    assert health()[:2] == (503, ["scheduler"])
    run("recover_stuck", "-v", "0")
    assert health() == (200, [], {"alive": True, "processes": [f"{socket.gethostname()}:recover_stuck"]})
    # Each turn replaces the sign of the one before.
    run("recover_stuck", "-v", "0")
    [sign] = KVEntry.objects.filter(key__startswith="heartbeat:scheduler:")
    assert sign.expires_at is not None
    assert timedelta(minutes=14) < sign.expires_at - sign.updated_at <= timedelta(minutes=15)


def test_the_sign_of_a_slow_cron_lasts_for_some_of_its_turns(env: WorkerEnv, settings: Settings) -> None:
    settings.RECOVERY_INTERVAL = 1800.0
    run("recover_stuck", "-v", "0")
    sign = KVEntry.objects.get(key__startswith="heartbeat:scheduler:")
    assert sign.expires_at is not None
    assert timedelta(minutes=89) < sign.expires_at - sign.updated_at <= timedelta(minutes=90)


async def test_a_scheduler_that_died_is_missed_however_lately_it_swept(env: WorkerEnv) -> None:
    async with heartbeat("scheduler", [env]):
        await sync_to_async(run_command, thread_sensitive=False)("recover_stuck")
        assert await RecoverySweep.objects.acount() == 1
    assert await living(env, "scheduler") == []


def test_what_could_not_be_put_back_is_2(env: WorkerEnv) -> None:
    make_submissions(env, 2, age=LONG_AGO)
    with inserts_refused(env.database, QueueMessage._meta.db_table):
        ended = run("recover_stuck")
    assert (ended.code, ended.out) == (2, "default: 2 failed (2 read)\n")


def test_what_could_not_be_read_is_3_and_named(env: WorkerEnv) -> None:
    broken, _good = make_submissions(env, 2, age=LONG_AGO)
    damage(env, broken)
    ended = run("recover_stuck")
    assert (ended.code, ended.out) == (3, "default: 1 recovered, 1 malformed (1 read)\n")
    assert ended.err == f"could not be read, left as it is: sub:{broken}\n"


def test_another_run_that_holds_the_lock_is_4_and_nothing_is_done(env: WorkerEnv) -> None:
    make_submissions(env, 1, age=LONG_AGO)

    async def beside_another() -> Ended:
        async with run_lock(env, "recover_stuck"):
            return await sync_to_async(run)("recover_stuck")

    ended = async_to_sync(beside_another)()
    assert ended.code == 4
    assert "Another recover_stuck of 'default' is running. Nothing was done" in ended.err
    assert not QueueMessage.objects.exists()


def test_a_dry_run_lists_what_it_would_do(env: WorkerEnv) -> None:
    made = make_submission(env, State.TIER1_SCANNING, age=LONG_AGO)
    listed, summary = run("recover_stuck", "--dry-run").out.splitlines()
    assert listed == f"{made.id}  TIER1_SCANNING  30.0 min  hello-skill  would_recover"
    assert summary == "default: 1 would recover (1 read)"
    assert not QueueMessage.objects.exists()


def test_a_program_gets_one_document_an_environment(env: WorkerEnv) -> None:
    made = make_submission(env, age=LONG_AGO)
    document = run("recover_stuck", "--json").document
    [submission] = document.pop("submissions")
    assert (submission["id"], submission["result"]) == (made.id, "recovered")
    assert document == {
        "environment": "default",
        "read": 1,
        "missing": 0,
        "malformed": 0,
        "unreadable": 0,
        "unreadableKeys": [],
        "left": 0,
        "recovered": 1,
        "held": 0,
        "on_its_way": 0,
        "moved": 0,
        "failed": 0,
        "would_recover": 0,
        "would_hold": 0,
        "dryRun": False,
    }


def test_its_options_narrow_what_is_looked_at(env: WorkerEnv) -> None:
    make_submissions(env, 2, age=timedelta(minutes=3))
    make_submissions(env, 2, State.TIER1_SCANNING, age=LONG_AGO)
    assert run("recover_stuck", "--dry-run", "--json", "--older-than", "120").document["would_recover"] == 4
    assert run("recover_stuck", "--dry-run", "--json", "--state", "TIER1_SCANNING").document["would_recover"] == 2
    assert run("recover_stuck", "--dry-run", "--json", "--state", "RECEIVED").document["would_recover"] == 0
    assert run("recover_stuck", "--dry-run", "--json", "--using", "scan").document["read"] == 4
    limited = run("recover_stuck", "--json", "--limit", "1").document
    assert (limited["recovered"], limited["left"]) == (1, 1)


def test_an_environment_that_is_not_there_is_an_error_that_names_those_that_are(env: WorkerEnv) -> None:
    with pytest.raises(CommandError, match="default"):
        run("recover_stuck", "--environment", "nowhere")


def test_its_help_names_every_option_and_exit_code() -> None:
    told = help_of("recover_stuck")
    for option in ("--dry-run", "--json", "--limit", "--older-than", "--state", "--environment", "--using"):
        assert option in told
    assert "0 done or nothing to do, 2 some were not recovered, 3 some entries could not be read, 4 another" in told
