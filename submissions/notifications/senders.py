"""Children that send webhooks, each one at a time and many in turn, so that few have to be started."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from submissions.source.pinned_child import Asked, ServingChild
from submissions.source.pinning import Pinned
from submissions.source.urls import SourcePolicy

ANSWER_BYTES: Final = 1024
_SCRIPT: Final = Path(__file__).with_name("send_child.py")
# What a child has for all that it sends; it is replaced before that is used up.
_SECONDS: Final = 120.0
_CPU_SECONDS: Final = 30
_MOST_SENT: Final = 100

# Whom a child sends for: webhooks of operators, or of accounts; and how its client is made.
_For = tuple[bool, SourcePolicy]


class Senders:
    """The children of one run, of which at most ``most`` live at once while no more than that send.

    One that has not answered in time and in order is killed, so whatever a receiver does holds up nobody else. No
    child sends for accounts and for operators. Leaving the ``async with`` block ends them all. ``begun`` is how many
    were started.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._idle: list[tuple[_For, ServingChild]] = []
        self._busy = 0
        self.begun = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        idle, self._idle = self._idle, []
        await asyncio.gather(*(child.close() for _for, child in idle))

    async def send(
        self,
        url: str,
        to: Pinned,
        headers: Mapping[str, str],
        body: bytes,
        policy: SourcePolicy,
        *,
        of_operators: bool,
        seconds: float,
    ) -> Asked:
        """Post ``body`` with ``headers`` to ``url`` at the addresses of ``to``, and return what a child found.

        Raises OSError where no child can be started.
        """
        whom = (of_operators, policy)
        child, asked = None, None
        self._busy += 1
        try:
            child = await self._taken(whom, seconds)
            more = {"body": base64.b64encode(body).decode(), "answer_bytes": ANSWER_BYTES}
            asked = await child.ask(url, to, headers, more, seconds=seconds)
            return asked
        finally:
            self._busy -= 1
            if child is not None and asked is not None and asked.clean and child.asked < _MOST_SENT:
                self._idle.append((whom, child))
            elif child is not None:
                await child.close()

    async def _taken(self, whom: _For, seconds: float) -> ServingChild:
        """Return a child that waits, or a new one; another that waits ends where there were too many then."""
        # The newest of those that wait, so that the others get old and end.
        for place in reversed(range(len(self._idle))):
            known, child = self._idle[place]
            if known == whom:
                del self._idle[place]
                if child.seconds_left > seconds:
                    return child
                await child.close()
                break
        if self._idle and len(self._idle) + self._busy > self._most:
            _known, child = self._idle.pop(0)
            await child.close()
        self.begun += 1
        return ServingChild(_SCRIPT, policy=whom[1], seconds=_SECONDS, cpu_seconds=_CPU_SECONDS)
