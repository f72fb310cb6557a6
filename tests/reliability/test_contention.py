"""Contention between claimers, sweeps, submitters and writers: nothing is lost, and nothing happens twice."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.git_factory import make_repository, skill_md
from tests.reliability.conftest import Record
from tests.reliability.installation import Installation, environments, installation

CLAIMERS, MESSAGES = 16, 10_000
STUCK = 120
MESSAGE_COUNT = "SELECT count(*) FROM submissions_queuemessage"
STEP_COUNT = "SELECT count(*) FROM submissions_submissiontransition"


def test_sixteen_claimers_claim_ten_thousand_messages_once_each(tmp_path: Path, record: Record) -> None:
    # Nothing renews the leases here, so that they have to outlast a machine that does something else for a while.
    with installation(tmp_path, VSKILL_QUEUE_LEASE="60", VSKILL_QUEUE_HEARTBEAT="10") as one:
        one.run("send_many", name="default", subjects=[f"subject {number}" for number in range(MESSAGES)])
        claimers = [one.start("claim_all", name="default") for _ in range(CLAIMERS)]
        for claimer in claimers:
            claimer.succeeds()
        rows = one.rows("""SELECT value FROM kv_kventry WHERE "key" LIKE 'claimed:%'""")
        claimed = [subject for (value,) in rows for subject in json.loads(value)]
        assert len(rows) == CLAIMERS
        assert len(claimed) == len(set(claimed)) == MESSAGES
        assert one.number(MESSAGE_COUNT) == 0
        busy = sum(len(json.loads(value)) > 0 for (value,) in rows)
        record("16 claimers, 10,000 messages", f"0 claimed twice, 0 left; {busy} of the claimers got some")


def each_moved_once(one: Installation) -> None:
    """Check that every stuck submission was put back with one transition and one message."""
    assert one.number(STEP_COUNT) == one.number(
        "SELECT count(DISTINCT submission_id) FROM submissions_submissiontransition"
    )
    assert one.number(STEP_COUNT) == one.number(MESSAGE_COUNT) == STUCK
    assert one.number("SELECT count(*) FROM submissions_submissionentry WHERE state = 'RECEIVED'") == STUCK


def test_four_sweeps_at_once_move_each_submission_once(one: Installation, record: Record) -> None:
    one.run("stuck", name="default", count=STUCK, minutes=30.0)
    sweeps = [one.start("command", words=["recover_stuck"]) for _ in range(4)]
    codes = sorted(sweep.ends() for sweep in sweeps)
    assert set(codes) <= {0, 4}
    assert 0 in codes
    each_moved_once(one)
    assert one.number("SELECT sum(recovered) FROM submissions_recoverysweep") == STUCK
    record("4 recover_stuck at once", f"each of {STUCK} submissions moved once; exit codes {codes}")


def kill_a_sweep(one: Installation, point: str) -> None:
    one.run("stuck", name="default", count=STUCK, minutes=30.0)
    killed = one.start("command", words=["recover_stuck"], kill_at=point)
    assert killed.ends() == -signal.SIGKILL, killed.said()


def test_a_sweep_that_is_killed_half_way_is_ended_by_the_next(tmp_path: Path, record: Record) -> None:
    with ExitStack() as stack:
        # Both are killed before either is waited for, so that the one lock ends while the other does.
        killed = []
        for when, moved in (("before", 39), ("after", 40)):
            (tmp_path / when).mkdir()
            one = stack.enter_context(installation(tmp_path / when))
            kill_a_sweep(one, f"{when}:commit-message:40")
            killed.append((one, when, moved))
        for one, when, moved in killed:
            assert one.number(MESSAGE_COUNT) == moved, when
            # Its lock expires. Until then, other sweeps report that one is running and exit with 4.
            while (next_one := one.start("command", words=["recover_stuck"])).ends() == 4:
                assert "its lock ends by itself" in next_one.said()
            each_moved_once(one)
            assert one.number("SELECT count(*) FROM submissions_recoverysweep WHERE ended_at IS NULL") == 1
            record("recover_stuck killed half-way", f"{moved} of {STUCK} moved before, the rest by the next, each once")


@pytest.mark.parametrize("people", [20, 200])
def test_many_who_submit_one_skill_at_once_leave_one_row_and_one_message(
    one: Installation, record: Record, people: int
) -> None:
    repository = make_repository(one.instance.data_dir / "skills.git", {"hello-skill/SKILL.md": skill_md()})
    url = repository.as_uri()
    processes = [one.start("accept_the_same", name="default", url=url, people=people // 4) for _ in range(4)]
    for process in processes:
        process.succeeds()
    for table in ("submissions_submissionentry", "submissions_submissiontransition", "submissions_queuemessage"):
        assert one.number(f"SELECT count(*) FROM {table}") == 1  # noqa: S608 - names of this test
    record(f"{people} parallel submissions of one skill, from 4 processes", "one row, one history row, one message")


def test_web_consumer_and_sweep_write_at_once_and_nobody_hears_of_a_lock(tmp_path: Path, record: Record) -> None:
    # When ten processes share two processors, a writer of SQLite can wait for almost as long as this lease.
    with installation(tmp_path, VSKILL_QUEUE_LEASE="30", VSKILL_QUEUE_HEARTBEAT="5") as one:
        # Accepting a submission takes three writes, and working it off seven.
        accepting = [one.start("accept_many", name="default", start=start, count=250) for start in (0, 250, 500, 750)]
        sweeping = one.start("sweep_often", name="default", times=60)
        working = [one.start("walk", name="default") for _ in range(2)]
        for process in [*accepting, *working, sweeping]:
            process.succeeds()
            assert "locked" not in process.said()
        one.run("walk", name="default")
        assert one.number(MESSAGE_COUNT) == 0
        assert one.number("SELECT count(*) FROM submissions_submissionentry WHERE state = 'REJECTED'") == 1_000
        assert one.number(STEP_COUNT) == 3_000
    record("web, consumer and sweep writing at once, 10,000 writes", "no lock reached anyone, every step once")


class TestTwoDatabases:
    @pytest.fixture
    def both(self, tmp_path: Path) -> Iterator[tuple[Installation, Installation]]:
        (tmp_path / "first").mkdir()
        (tmp_path / "other").mkdir()
        with installation(tmp_path / "other") as other:
            databases = {"public": "default", "internal": "internal"}
            with installation(
                tmp_path / "first",
                VSKILL_DATABASES=json.dumps({"internal": other.instance.database_url}),
                VSKILL_ENVIRONMENTS=environments(list(databases), tmp_path / "first" / "data", databases),
            ) as one:
                yield one, other

    def test_one_consumer_serves_two_environments_with_a_database_each(
        self, both: tuple[Installation, Installation], record: Record
    ) -> None:
        one, other = both
        repository = make_repository(one.instance.data_dir / "skills.git", {"hello-skill/SKILL.md": skill_md()})
        one.run("submit_to", names=["public", "internal"], url=repository.as_uri())
        said = one.run("command", words=["consume", "--drain"])
        assert "consumer ended: 2 done" in said
        one.run("published", names=["public", "internal"])
        entries = "SELECT namespace, state FROM submissions_submissionentry"
        assert one.rows(entries) == [("public", "PUBLISHED")]
        assert other.rows(entries) == [("internal", "PUBLISHED")]
        record("two environments, a database each, one consumer", "each published in its own database alone")
