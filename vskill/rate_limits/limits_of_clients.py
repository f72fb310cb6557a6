"""Count requests against the limits of their clients."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from django.conf import settings
from django.core.signals import setting_changed
from limits import RateLimitItem, parse
from limits.strategies import FixedWindowRateLimiter

from vskill.environments import WorkerEnv
from vskill.rate_limits.kinds import Kind
from vskill.rate_limits.process_counts import ProcessCounts
from vskill.rate_limits.stored_counts import StoredCounts

logger = logging.getLogger(__name__)

# A process tells the others of a client each time that it has used up this part of its limit.
_PART: Final = 16
# Seconds between two lines of the log about refusals of one kind.
_SILENCE: Final = 60.0


@dataclass(frozen=True)
class Allowance:
    """What a client may still do: ``limit`` requests in ``window`` seconds, ``remaining`` until ``resets_at``.

    ``resets_at`` is in seconds since 1970. ``refused`` says that this request is one too many.
    """

    limit: int
    window: int
    remaining: int
    resets_at: float
    refused: bool

    @property
    def seconds(self) -> int:
        """Return the whole seconds until the window ends, at least one."""
        return max(1, math.ceil(self.resets_at - time.time()))


class ClientLimit:
    """The limit of one kind of requests in one environment."""

    def __init__(self, env: WorkerEnv, kind: Kind, rate: str) -> None:
        """Start without counts; ``rate`` is a text such as ``60/minute``."""
        self._about = f"{kind} in {env.name}, {rate}"
        self._item: RateLimitItem = parse(rate)
        self._item.namespace = kind
        counts = ProcessCounts(StoredCounts(env.database, env.name), max(1, self._item.amount // _PART))
        self._limiter = FixedWindowRateLimiter(counts)
        self._lock = Lock()
        self._untold = 0
        self._tell_at = 0.0

    def count(self, client: str) -> Allowance:
        """Count one request of ``client``, unless that is refused, and return what it may still do."""
        # A client that goes on after a refusal costs a look-up, and no write.
        refused = not (self._limiter.test(self._item, client) and self._limiter.hit(self._item, client))
        resets_at, remaining = self._limiter.get_window_stats(self._item, client)
        if refused:
            self._tell(client)
        return Allowance(self._item.amount, self._item.get_expiry(), remaining, resets_at, refused)

    def _tell(self, client: str) -> None:
        now = time.monotonic()
        with self._lock:
            self._untold += 1
            if now < self._tell_at:
                return
            refusals, self._untold = self._untold, 0
            self._tell_at = now + _SILENCE
        logger.warning(
            "limit of clients reached (%s): refused %s; %d refused since the last such line. "
            "If that is a proxy, name it in VSKILL_TRUSTED_PROXIES.",
            self._about,
            client,
            refusals,
        )


_limits: dict[tuple[str, str, Kind], ClientLimit | None] = {}
_making = Lock()


def limit_of(env: WorkerEnv, kind: Kind) -> ClientLimit | None:
    """Return the limit of a kind of requests in an environment, or ``None`` where it is off."""
    place = (env.name, env.database, kind)
    if place not in _limits:
        with _making:
            rate = settings.RATE_LIMITS[kind]
            _limits.setdefault(place, ClientLimit(env, kind, rate) if rate else None)
    return _limits[place]


def _start_anew(*, setting: str, **_kwargs: Any) -> None:
    if setting == "RATE_LIMITS":
        _limits.clear()


setting_changed.connect(_start_anew, dispatch_uid="vskill.rate_limits")
