"""A bounded number of slots that is shared out fairly among those who wait for one.

A slot is asked for on behalf of somebody: a path of names, such as an environment, a host in it and an owner there. A
slot that becomes free goes to the environments in turn, within one to its hosts in turn, and so on down the path; only
those with equal paths are served in the order in which they came. Whoever begins to wait goes to the end of the ring
of those beside it, so a stream of newcomers overtakes nobody.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

Path = tuple[str, ...]


@dataclass(eq=False)
class _Ring:
    """Those who wait below one name: the names of the next level, and the waiters whose path ends here."""

    below: dict[str, _Ring] = field(default_factory=dict)
    waiters: deque[asyncio.Future[None]] = field(default_factory=deque)

    def __bool__(self) -> bool:
        return bool(self.below or self.waiters)

    def add(self, path: Path, waiter: asyncio.Future[None]) -> None:
        """Let ``waiter`` wait at ``path`` below this name."""
        if path:
            self.below.setdefault(path[0], _Ring()).add(path[1:], waiter)
        else:
            self.waiters.append(waiter)

    def remove(self, path: Path, waiter: asyncio.Future[None]) -> None:
        """Let ``waiter`` at ``path`` wait no more, if it still does."""
        if not path:
            with suppress(ValueError):
                self.waiters.remove(waiter)
        elif (following := self.below.get(path[0])) is not None:
            following.remove(path[1:], waiter)
            if not following:
                del self.below[path[0]]

    def take(self, may_hold_more: Callable[[Path], bool], path: Path = ()) -> tuple[Path, asyncio.Future[None]] | None:
        """Return whose turn it is, with its path, and let it wait no more; ``None`` where nobody may hold a slot.

        ``may_hold_more`` tells of a name, by its ``path``, whether it may hold one more slot.
        """
        if self.waiters:
            return path, self.waiters.popleft()
        for name, following in self.below.items():
            taken = following.take(may_hold_more, (*path, name)) if may_hold_more((*path, name)) else None
            if taken is not None:
                # To the end of the ring: the others come first now.
                del self.below[name]
                if following:
                    self.below[name] = following
                return taken
        return None


class FairSlots:
    """``places`` slots; see the module for who gets one."""

    def __init__(self, places: int, most: Sequence[int] = (), *, spares: int | None = None) -> None:
        """Give out ``places`` slots at once.

        ``most`` are how many of them one name may hold at most, for each level of the path; without a number there is
        no such limit. ``spares`` is a level at which a name gets another slot only while it holds fewer than are free:
        of six, the first name that asks has up to three, a second up to two, and the last is for a third. A name that
        may hold no more waits even while a slot is free, so that another finds one.
        """
        self._free = places
        self._most: Final = tuple(most)
        self._spares: Final = spares
        self._held: Counter[Path] = Counter()
        self._waiting: Final = _Ring()

    @property
    def free(self) -> int:
        """Return how many slots nobody holds."""
        return self._free

    async def acquire(self, *path: str) -> None:
        """Take a slot on behalf of ``path``, as soon as it is its turn; whoever has one calls ``release``."""
        # Whoever could take a slot has been given it, so that nobody is overtaken by this.
        if self._free > 0 and all(self._may_hold_more(path[: end + 1]) for end in range(len(path))):
            self._take(path)
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(path, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self._waiting.remove(path, waiter)
            else:
                # It was given a slot and cancelled before it could notice.
                self.release(*path)
            raise

    def release(self, *path: str) -> None:
        """Give back a slot that was taken on behalf of ``path``."""
        self._free += 1
        for end in range(len(path)):
            prefix = path[: end + 1]
            self._held[prefix] -= 1
            if not self._held[prefix]:
                del self._held[prefix]
        self._give_out()

    def _may_hold_more(self, name: Path) -> bool:
        level = len(name) - 1
        if level == self._spares and self._held[name] >= self._free:
            return False
        return level >= len(self._most) or self._held[name] < self._most[level]

    def _take(self, path: Path) -> None:
        self._free -= 1
        self._held.update(path[: end + 1] for end in range(len(path)))

    def _give_out(self) -> None:
        while self._free > 0 and (taken := self._waiting.take(self._may_hold_more)) is not None:
            path, waiter = taken
            # One that was cancelled a moment ago may not have run since, to remove itself.
            if not waiter.cancelled():
                self._take(path)
                waiter.set_result(None)
