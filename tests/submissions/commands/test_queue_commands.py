"""manage.py queue_status, pause, resume, retry, verify_store and consume: what they do, say, and return."""

from __future__ import annotations

import logging
import subprocess
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.core.management import CommandError

from submissions.models import QueueMessage
from submissions.queue.database import get_queue
from submissions.states import State
from submissions.store.queries import read_submission
from tests.submissions.commands.run import Ended, help_of, run
from tests.submissions.factories import make_submission, make_submissions
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry

pytestmark = pytest.mark.django_db(transaction=True)


def park(env: WorkerEnv, reason: str) -> None:
    """Receive the next message and park it."""
    queue = get_queue(env)

    async def receive_and_park() -> None:
        [message] = (await queue.receive(env.name, 1, worker="test")).messages
        await queue.park(message, reason)

    async_to_sync(receive_and_park)()


class TestQueueStatus:
    def test_it_counts_and_says_that_nobody_works(self, env: WorkerEnv) -> None:
        make_submissions(env, 2, message=True)
        park(env, "it failed three times")
        get_queue(env).send(env.name, "kind", "later", delay=timedelta(hours=1))
        ended = run("queue_status")
        assert ended.out == "default: 1 waiting, 1 delayed, 0 in work, 1 parked; 0 consumers\n"
        assert ended.err == "Work waits and no consumer lives: start one with 'manage.py consume'.\n"

    def test_a_program_gets_a_document(self, env: WorkerEnv) -> None:
        make_submissions(env, 2, message=True)
        document = run("queue_status", "--json").document
        oldest = document.pop("oldestAt")
        assert oldest.endswith("Z")
        assert document == {
            "environment": "default",
            "waiting": 2,
            "delayed": 0,
            "leased": 0,
            "parked": 0,
            "pausedUntil": None,
            "consumers": [],
        }


class TestPause:
    def test_a_pause_says_until_when_and_the_status_says_by_whom_and_why(self, env: WorkerEnv) -> None:
        assert run("pause", "a new disk", "--minutes", "30").out.startswith("default is paused until 2")
        told = run("queue_status").out
        assert "; paused until " in told
        assert told.endswith(": a new disk\n")
        entry = KVEntry.objects.get(key="queue:paused")
        assert entry.expires_at is not None
        assert timedelta(minutes=29) < entry.expires_at - entry.updated_at <= timedelta(minutes=30)

    def test_without_a_time_it_lasts_an_hour(self, env: WorkerEnv) -> None:
        run("pause", "a new disk")
        entry = KVEntry.objects.get(key="queue:paused")
        assert entry.expires_at is not None
        assert timedelta(minutes=59) < entry.expires_at - entry.updated_at <= timedelta(hours=1)

    @pytest.mark.parametrize("minutes", ["0", "-5", "1441"])
    def test_a_pause_without_an_end_in_a_day_is_refused(self, env: WorkerEnv, minutes: str) -> None:
        with pytest.raises(CommandError, match="at most 24 hours"):
            run("pause", "for ever", f"--minutes={minutes}")
        assert not KVEntry.objects.exists()

    def test_resume_ends_it_and_says_when_there_was_none(self, env: WorkerEnv) -> None:
        run("pause", "a new disk")
        assert run("resume").out == "default takes work again.\n"
        assert run("resume").out == "default was not paused.\n"


class TestRetry:
    def test_it_lists_dead_work_and_changes_nothing(self, env: WorkerEnv) -> None:
        made = make_submission(env, State.ON_HOLD, message=True)
        park(env, "it failed three times")
        assert run("retry").out == f"default: {made.id} (verify_submission) it failed three times\n"
        assert read_submission(env, made.id).state is State.ON_HOLD

    def test_it_puts_back_what_is_named(self, env: WorkerEnv) -> None:
        made = make_submission(env, State.ON_HOLD, message=True)
        park(env, "it failed three times")
        ended = run("retry", made.id, "--reason", "the host is back")
        assert ended.out == f"default: {made.id} (verify_submission) retried: it failed three times\n"
        after = read_submission(env, made.id)
        assert (after.state, after.text("reason")) == (State.RECEIVED, "the host is back")
        assert run("retry").out == "default: no dead work\n"

    def test_it_puts_back_everything(self, env: WorkerEnv) -> None:
        for _ in range(3):
            make_submission(env, State.ON_HOLD, message=True)
            park(env, "it failed three times")
        document = run("retry", "--all", "--json").document
        assert [work["result"] for work in document["work"]] == ["retried"] * 3
        assert QueueMessage.objects.filter(parked_at=None).count() == 3

    def test_what_is_not_dead_is_an_error(self, env: WorkerEnv) -> None:
        with pytest.raises(CommandError, match="no dead work about sub_none"):
            run("retry", "sub_none")
        with pytest.raises(CommandError, match="not both"):
            run("retry", "sub_none", "--all")


class TestVerifyStore:
    def test_a_store_in_order_is_0(self, env: WorkerEnv) -> None:
        make_submissions(env, 2, message=True)
        assert run("verify_store") == Ended(0, "default: nothing is wrong (2 entries read)\n", "")

    def test_what_is_found_is_2_until_it_is_mended(self, env: WorkerEnv) -> None:
        made = make_submission(env)
        ended = run("verify_store")
        assert ended.code == 2
        assert ended.out.splitlines() == [
            f"default: found: submission_without_message {made.id}: it is RECEIVED and has no message",
            "default: 1 found, 0 mended, 1 left (1 entries read)",
        ]
        mended = run("verify_store", "--repair", "--json")
        assert mended.code == 0
        assert (mended.document["repaired"], mended.document["left"]) == (1, 0)
        assert mended.document["found"]["submission_without_message"] == 1
        assert run("verify_store").code == 0


class TestConsume:
    def test_drain_ends_when_nothing_is_left_and_says_how_it_ended(self, env: WorkerEnv) -> None:
        get_queue(env).send(env.name, "no_such_kind", "one")
        ended = run("consume", "--drain")
        assert (ended.code, ended.out) == (0, "consumer ended: 1 parked\n")

    def test_once_on_an_empty_queue_ends(self, env: WorkerEnv) -> None:
        assert run("consume", "--once", "--environment", "default").out == "consumer ended: there was no work\n"

    def test_it_says_whether_engines_are_cut_off_from_the_network(
        self, env: WorkerEnv, caplog: pytest.LogCaptureFixture
    ) -> None:
        unshare = ["unshare", "--net", "--map-root-user", "true"]
        cut = subprocess.run(unshare, check=False, capture_output=True).returncode == 0
        with caplog.at_level(logging.INFO):
            run("consume", "--once")
        [said] = [one for one in caplog.records if "network" in one.getMessage()]
        assert said.getMessage().startswith(f"scanning engines are {'' if cut else 'not '}cut off from the network")
        assert said.levelno == (logging.INFO if cut else logging.WARNING)

    def test_a_sign_of_life_is_gone_when_it_has_ended(self, env: WorkerEnv) -> None:
        run("consume", "--once")
        assert run("queue_status", "--json").document["consumers"] == []

    @pytest.mark.parametrize("option", ["--max-batch-size", "--max-concurrency"])
    def test_numbers_below_1_are_refused(self, env: WorkerEnv, option: str) -> None:
        with pytest.raises(CommandError, match="at least 1"):
            run("consume", "--once", option, "0")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("consume", "--max-batch-size --max-concurrency --environment --once --drain --isolated SIGTERM"),
        ("queue_status", "--json --environment"),
        ("pause", "--minutes --environment reason"),
        ("resume", "--environment"),
        ("retry", "--all --json --reason --environment"),
        ("verify_store", "--repair --json --environment"),
    ],
)
def test_its_help_names_every_option(command: str, words: str) -> None:
    told = help_of(command)
    assert [word for word in words.split() if word not in told] == []
