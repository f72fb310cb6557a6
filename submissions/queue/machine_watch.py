"""Let a consumer take nothing while its own machine is at fault.

A worker whose disk is full fails fast, and would otherwise take most of the work and spoil all of it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic
from typing import Final

from django.conf import settings

from submissions.queue.base import Message
from vskill.processes.machine_faults import probe_children, probe_machine

logger = logging.getLogger(__name__)

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
# A message that meets a fault more often than this, while the probe passes in between, is likely to cause it.
FAULTS_FORGIVEN: Final = 3


async def probe() -> None:
    """Do a little of everything that a worker needs; raise what goes wrong."""
    probe_machine(Path(settings.DATA_DIR))
    await probe_children()


class MachineWatch:
    """Whether this machine can work: it cannot from a fault on until ``probe`` passes, tried ever less often."""

    def __init__(self, probe: Callable[[], Awaitable[None]] = probe) -> None:
        self._probe = probe
        self._pause = FIRST_PAUSE
        self._probe_at = 0.0
        self._met_by: Counter[tuple[str, str, str]] = Counter()
        self.fault = ""

    def report(self, fault: str) -> None:
        """Take nothing from now on, because of ``fault``."""
        if not self.fault:
            logger.error("this machine cannot work, so nothing is taken until it can: %s", fault)
            self._pause = FIRST_PAUSE
            self._probe_at = monotonic() + self._pause
        self.fault = fault

    def is_innocent(self, message: Message) -> bool:
        """Report that work on ``message`` met a fault, and return whether the message is to be given back uncounted."""
        met = (message.environment, message.kind, message.subject)
        self._met_by[met] += 1
        return self._met_by[met] <= FAULTS_FORGIVEN

    async def can_work(self) -> bool:
        """Return whether work may be taken; after a fault, try the probe when its time has come."""
        if not self.fault:
            return True
        if monotonic() < self._probe_at:
            return False
        try:
            await self._probe()
        except Exception as error:  # noqa: BLE001 - whatever it is, this machine cannot work
            self.fault = str(error) or repr(error)
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            self._probe_at = monotonic() + self._pause
            return False
        logger.warning("this machine can work again; the fault was: %s", self.fault)
        self.fault = ""
        return True
