"""Workers that die, hang, stall or are stopped: their work is redelivered in time, to one worker at a time."""

from __future__ import annotations

import contextlib
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.end_to_end.processes import until
from tests.reliability.conftest import Record
from tests.reliability.installation import LEASE, SWEEP, Installation, Role, installation
from tests.reliability.killers import KILLERS, MESSAGES, Course, runs, work_off

IN_FLIGHT = 30
LEASED = "SELECT count(*) FROM submissions_queuemessage WHERE leased_until IS NOT NULL"


def owners(one: Installation) -> Counter[str]:
    """Return how many messages each worker has leased."""
    rows = "SELECT leased_by, count(*) FROM submissions_queuemessage WHERE leased_until IS NOT NULL GROUP BY leased_by"
    return Counter(dict(one.rows(rows)))


def holds_all(one: Installation, worker: Role) -> bool:
    """Tell whether a process has leased as many messages as it can."""
    held = (count for name, count in owners(one).items() if name.partition("@")[0].endswith(f":{worker.pid}"))
    return sum(held) == IN_FLIGHT


def test_thirty_messages_in_flight_are_claimed_again_within_lease_and_sweep(one: Installation, record: Record) -> None:
    fastest = float("inf")
    for _attempt in range(3):
        one.run("send", name="default", subjects=[f"subject {number}" for number in range(IN_FLIGHT)])
        killed = one.start("consume", names=["default"], seconds=600.0, elsewhere=True)
        until(lambda: runs(one, "begun").total() == IN_FLIGHT)
        other = one.start("consume", names=["default"], seconds=600.0)
        killed.killed()
        at = time.monotonic()
        until(partial(holds_all, one, other))
        fastest = min(fastest, time.monotonic() - at)
        other.killed()
        one.run("clear")
        # One slow attempt may be due to a busy machine. The promise is about the queue.
        if fastest <= LEASE + SWEEP:
            break
    assert fastest <= LEASE + SWEEP
    record("kill with 30 messages in flight", f"all claimed again {fastest:.1f} s later (lease {LEASE:g} s, sweep 1 s)")


def test_what_a_killed_worker_held_is_taken_over_at_once_on_its_own_machine(tmp_path: Path, record: Record) -> None:
    # A lease that cannot end during this test.
    with installation(tmp_path, VSKILL_QUEUE_LEASE="300", VSKILL_QUEUE_HEARTBEAT="60") as one:
        one.run("send", name="default", subjects=[f"subject {number}" for number in range(IN_FLIGHT)])
        killed = one.start("consume", names=["default"], seconds=600.0)
        until(lambda: runs(one, "begun").total() == IN_FLIGHT)
        other = one.start("consume", names=["default"], seconds=600.0)
        killed.killed()
        at = time.monotonic()
        until(partial(holds_all, one, other))
        took = time.monotonic() - at
        other.killed()
    case = "kill with 30 messages in flight, beside the next consumer"
    record(case, f"all claimed again {took:.1f} s later (lease 300 s)")


def test_a_message_of_ten_leases_length_runs_once(tmp_path: Path, record: Record) -> None:
    lease = 1.0
    with installation(tmp_path, VSKILL_QUEUE_LEASE=f"{lease:g}", VSKILL_QUEUE_HEARTBEAT="0.2") as one:
        one.run("send", name="default", subjects=["long"])
        consumers = [one.start("consume", names=["default"], seconds=10 * lease, drain=True) for _ in range(2)]
        for consumer in consumers:
            consumer.succeeds()
        assert (runs(one, "begun"), runs(one, "ended")) == ({"long": 1}, {"long": 1})
        assert one.number(MESSAGES) == 0
    record("message of 10 leases' length with heartbeats", "ran once, with a second consumer waiting")


def test_a_worker_whose_database_stalls_stops_its_work_and_one_other_run_ends_it(
    one: Installation, record: Record
) -> None:
    one.run("send", name="default", subjects=["stalled"])
    consumer = one.start("consume", names=["default"], seconds=1.2 * LEASE)
    until(lambda: runs(one, "begun")["stalled"] == 1)
    stall = one.start("stall", seconds=1.5 * LEASE)
    stopped = one.instance.data_dir / f"stopped-stalled-{consumer.pid}"
    # The work stops while the database is still stalled, before another worker can get the lease.
    until(lambda: stopped.exists() or "lost" in consumer.said())
    assert "its work stops" in consumer.said()
    stall.succeeds()
    one.wait_for(MESSAGES, 0)
    assert (runs(one, "begun"), runs(one, "ended")) == ({"stalled": 2}, {"stalled": 1})
    consumer.signal(signal.SIGTERM)
    consumer.succeeds()
    record("database stalled for 1.5 leases", "the worker stopped its own work; one re-run, ended once")


@pytest.fixture(scope="module")
def courses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Course]]]:
    """Work off messages beside each killer, in an installation of its own and at the same time.

    Each mostly waits, for the leases of workers that have died.
    """
    folder = tmp_path_factory.mktemp("killers")
    with ThreadPoolExecutor(len(KILLERS)) as threads:
        yield {killer: threads.submit(work_off, folder / killer, killer, others=300) for killer in KILLERS}


@pytest.mark.parametrize("killer", KILLERS)
def test_what_kills_its_worker_is_parked_and_the_others_are_worked_off(
    killer: str, courses: dict[str, Future[Course]], record: Record
) -> None:
    course = courses[killer].result()
    assert course.parked == {killer: 3}
    # Some of them ran twice: a worker may die after the work and before its acknowledgement.
    assert set(course.ended) == {f"subject {number}" for number in range(300)}
    # Twice in the process of a worker, and the third time in isolation.
    assert set(course.deaths) == {KILLERS[killer]}
    assert course.deaths.total() <= 2
    record(f"a message that kills its worker ({killer})", "parked after 3 crashes, and nobody else; 300 others done")


class TestSignals:
    @pytest.fixture
    def at_work(self, one: Installation) -> Iterator[Role]:
        one.run("send", name="default", subjects=[f"subject {number}" for number in range(IN_FLIGHT)])
        consumer = one.start("consume", names=["default"], seconds=600.0)
        until(lambda: holds_all(one, consumer))
        yield consumer
        with contextlib.suppress(ProcessLookupError):
            consumer.signal(signal.SIGKILL)

    def test_the_first_signal_gives_everything_back_within_the_grace(self, tmp_path: Path, record: Record) -> None:
        with installation(tmp_path, VSKILL_QUEUE_SHUTDOWN_GRACE="0.3") as one:
            one.run("send", name="default", subjects=[f"subject {number}" for number in range(40)])
            consumer = one.start("consume", names=["default"], seconds=600.0)
            until(lambda: holds_all(one, consumer))
            consumer.signal(signal.SIGTERM)
            consumer.succeeds()
            assert one.number(LEASED) == 0
            assert one.number("SELECT count(*) FROM submissions_queuemessage WHERE crashes = 0 AND errors = 0") == 40
        record("SIGTERM", "nothing new taken, all given back uncounted, exit 0")

    def test_a_second_signal_ends_it_at_once_and_the_work_comes_back(
        self, one: Installation, at_work: Role, record: Record
    ) -> None:
        at_work.signal(signal.SIGTERM)
        until(lambda: at_work_has_heard(at_work))
        at_work.signal(signal.SIGTERM)
        assert at_work.ends() == 1
        assert one.number(LEASED) == IN_FLIGHT
        other = one.start("consume", names=["default"], seconds=600.0)
        until(lambda: holds_all(one, other))
        other.killed()
        record("second SIGTERM", "ends at once with 1; the work comes back")


def at_work_has_heard(worker: Role) -> bool:
    """Tell whether a process has received the first SIGTERM, so that none is pending."""
    status = Path(f"/proc/{worker.pid}/status").read_text()
    pending = [line.split()[1] for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
    return all(int(mask, 16) & (1 << (signal.SIGTERM - 1)) == 0 for mask in pending)
