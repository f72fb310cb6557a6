"""A message that kills its worker among others that do not: what becomes of it, and of them.

As a command it prints the pace of the others beside each kind of killer, for the benchmark: ``OTHERS FOLDER``.
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
# What a message says that it does, and how the process ends that works on it.
KILLERS: Final = {"exit": 3, "segfault": -signal.SIGSEGV, "memory": -signal.SIGABRT}
SECONDS_EACH: Final = 0.15


def runs(one: Installation, what: str) -> Counter[str]:
    """Return how often work on each message was ``begun`` or ``ended``."""
    keys = one.rows("""SELECT "key" FROM kv_kventry WHERE "key" LIKE 'run:%'""")
    return Counter(key.split(":")[1] for (key,) in keys if key.split(":")[2] == what)


class Supervisor:
    """Start a process again whenever it dies, until told otherwise."""

    def __init__(self, one: Installation, count: int, seconds: float) -> None:
        self._one = one
        self._seconds = seconds
        self.alive = {worker.pid: worker for worker in (self._start() for _ in range(count))}
        self.deaths: Counter[int] = Counter()

    def _start(self) -> Role:
        return self._one.start("consume", names=["default"], seconds=self._seconds)

    def restart_the_dead(self) -> None:
        """Reap who has died and start somebody else in the same place."""
        for pid, worker in list(self.alive.items()):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                self.deaths[worker.ends()] += 1
                del self.alive[pid]
                again = self._start()
                self.alive[again.pid] = again

    def end(self) -> None:
        """Kill those who are left."""
        for worker in self.alive.values():
            worker.killed()


@dataclass(frozen=True)
class Course:
    """How two workers got on.

    ``seconds`` is after how long the others were done, ``in_time`` how many of them were after the time that was given;
    ``deaths`` counts by exit code, ``parked`` has the crashes, ``ended`` how often each of the others ended.
    """

    seconds: float
    in_time: int
    deaths: Counter[int]
    parked: dict[str, int]
    ended: Counter[str]


def work_off(folder: Path, killer: str, others: int, time_given: float = 0.0) -> Course:
    """Let two workers work off ``others`` with one killer among them, or none where it is empty."""
    subjects = [f"subject {number}" for number in range(others)]
    if killer:
        subjects.insert(others // 3, killer)
    in_time = 0
    folder.mkdir(exist_ok=True)
    # A lease that no stall of a busy machine outlasts: what is counted here is deaths.
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
    """Return which part of the others is done beside each killer in the time that all of them take without one."""
    calm = work_off(folder / "calm", "", others)
    return {killer: work_off(folder / killer, killer, others, calm.seconds).in_time / others for killer in KILLERS}


if __name__ == "__main__":
    print(json.dumps(paces(Path(sys.argv[2]), int(sys.argv[1]))))
