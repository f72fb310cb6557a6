"""Work off messages of which one kills its worker.

As a command (``OTHERS FOLDER``), print for the benchmark which part of the others is done in time, for each kind of
killer.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.end_to_end.processes import until
from tests.reliability.installation import Installation, Role, installation

MESSAGES: Final = "SELECT count(*) FROM submissions_queuemessage WHERE parked_at IS NULL"
# The subject of a message, and the exit code of the process that works on it.
KILLERS: Final = {"exit": 3, "segfault": -signal.SIGSEGV, "memory": -signal.SIGABRT}
SECONDS_EACH: Final = 0.15


def runs(one: Installation, what: str) -> Counter[str]:
    """Return how often work on each message was ``begun`` or ``ended``, as ``what`` says."""
    keys = one.rows("""SELECT "key" FROM kv_kventry WHERE "key" LIKE 'run:%'""")
    return Counter(key.split(":")[1] for (key,) in keys if key.split(":")[2] == what)


class Supervisor:
    """Restart processes that die, until ``end``."""

    def __init__(self, one: Installation, count: int, seconds: float) -> None:
        """Start ``count`` consumers, which take ``seconds`` for each message."""
        self._one = one
        self._seconds = seconds
        self.alive = {worker.pid: worker for worker in (self._start() for _ in range(count))}
        self.deaths: Counter[int] = Counter()

    def _start(self) -> Role:
        return self._one.start("consume", names=["default"], seconds=self._seconds)

    def restart_the_dead(self) -> None:
        """Reap the processes that have died, and start one new process for each."""
        for pid, worker in list(self.alive.items()):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                self.deaths[worker.ends()] += 1
                del self.alive[pid]
                again = self._start()
                self.alive[again.pid] = again

    def end(self) -> None:
        """Kill the remaining processes."""
        for worker in self.alive.values():
            worker.killed()


@dataclass(frozen=True)
class Course:
    """The result of ``work_off``.

    After ``seconds`` all other messages were done; ``in_time`` of them were done within the given time. ``deaths``
    counts the deaths of workers by exit code, ``parked`` has the crashes of each parked message by subject, ``ended``
    counts how often work on each message ended.
    """

    seconds: float
    in_time: int
    deaths: Counter[int]
    parked: dict[str, int]
    ended: Counter[str]


def work_off(folder: Path, killer: str, others: int, time_given: float = 0.0) -> Course:
    """Let two workers work off messages, one of which may kill its worker.

    ``folder`` holds the installation. ``killer`` is a key of ``KILLERS``, '' for none. ``others`` is the number of
    other messages. ``time_given`` is in seconds; ``Course.in_time`` counts the others that are done by then.
    """
    subjects = [f"subject {number}" for number in range(others)]
    if killer:
        subjects.insert(others // 3, killer)
    in_time = 0
    folder.mkdir(exist_ok=True)
    # A long lease: no stall of a busy machine should end one, because deaths are counted here.
    lasting = {"VSKILL_QUEUE_LEASE": "10", "VSKILL_QUEUE_HEARTBEAT": "1"}
    with installation(folder, VSKILL_QUEUE_MAX_CRASHES="3", **lasting) as one:
        one.run("send_many", name="default", subjects=subjects)
        supervisor = Supervisor(one, 2, SECONDS_EACH)
        at = time.monotonic()

        def others_are_done() -> bool:
            nonlocal in_time
            supervisor.restart_the_dead()
            left = one.number(f"{MESSAGES} AND subject LIKE 'subject %'")
            if time.monotonic() - at <= time_given:
                in_time = others - left
            return left == 0

        until(others_are_done)
        seconds = time.monotonic() - at

        def all_is_done() -> bool:
            supervisor.restart_the_dead()
            return one.number(MESSAGES) == 0

        until(all_is_done)
        supervisor.end()
        parked = one.rows("SELECT subject, crashes FROM submissions_queuemessage WHERE parked_at IS NOT NULL")
        return Course(seconds, in_time, supervisor.deaths, dict(parked), runs(one, "ended"))


def paces(folder: Path, others: int) -> dict[str, float]:
    """Return, for each killer, the part of the others that is done in the time that all take without a killer."""
    calm = work_off(folder / "calm", "", others)
    return {killer: work_off(folder / killer, killer, others, calm.seconds).in_time / others for killer in KILLERS}


if __name__ == "__main__":
    print(json.dumps(paces(Path(sys.argv[2]), int(sys.argv[1]))))
