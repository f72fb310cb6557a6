"""Counts in the database, which all processes of an installation share, as a storage of the library ``limits``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from django.db import Error, connections
from django.db.models import F, QuerySet
from limits.storage import Storage

from vskill.rate_limits.models import RequestCount

# A flood of new addresses makes the table no larger than this in one environment; see ``_tidy``.
MOST_ROWS: Final = 50_000
# Keys that a process writes before it looks whether there are too many.
_TIDY_EVERY: Final = 4096
# Rows of one statement, which each take three of the parameters that SQLite allows.
_MOST_AT_ONCE: Final = 500


@dataclass(frozen=True)
class Window:
    """How much was counted in a window of time, and when it ends, in seconds since 1970."""

    count: int
    ends_at: float


class StoredCounts(Storage):
    """Count in the table of ``RequestCount``, in one statement for any number of keys; reads and writes are immediate.

    ``alias`` is the database, ``namespace`` the environment. Its methods wait for the database, so they are called on
    a thread that may wait. A window begins with the first count and ends after its time; all processes see the same
    one. The clock is that of the process: a clock that is wrong makes windows that are shorter or longer.
    """

    STORAGE_SCHEME = None

    def __init__(self, alias: str, namespace: str, *, most_rows: int = MOST_ROWS) -> None:
        """Keep where to count; ``most_rows`` is how many keys an environment keeps at most."""
        super().__init__()
        self._alias = alias
        self._namespace = namespace
        self._most_rows = most_rows
        self._lock = Lock()
        self._untidied = 0

    @property
    def base_exceptions(self) -> type[Exception]:
        """Return what the library may wrap."""
        return Error

    def add(self, amounts: Mapping[str, tuple[int, float]]) -> dict[str, Window]:
        """Add to counts; return the window of each key after that.

        ``amounts`` has for each key how much to add, and the seconds that a window lasts where this begins one.
        """
        # In one order, so that two processes never wait for each other's rows.
        keys = sorted(amounts)
        found: dict[str, Window] = {}
        for start in range(0, len(keys), _MOST_AT_ONCE):
            found |= self._add({key: amounts[key] for key in keys[start : start + _MOST_AT_ONCE]})
        with self._lock:
            self._untidied += len(keys)
            tidy = self._untidied >= _TIDY_EVERY
            if tidy:
                self._untidied = 0
        if tidy:
            self._tidy()
        return found

    def _add(self, amounts: Mapping[str, tuple[int, float]]) -> dict[str, Window]:
        if not amounts:
            return {}
        now = time.time()
        parameters: dict[str, Any] = {"namespace": self._namespace, "now": now}
        rows = []
        for number, (key, (amount, seconds)) in enumerate(amounts.items()):
            rows.append(f"(%(namespace)s, %(key{number})s, %(count{number})s, %(end{number})s)")
            parameters |= {f"key{number}": key, f"count{number}": amount, f"end{number}": now + seconds}
        table = f'"{RequestCount._meta.db_table}"'
        ended = f'{table}."ends_at" <= %(now)s'
        statement = (
            f'INSERT INTO {table} ("namespace", "key", "count", "ends_at") VALUES {", ".join(rows)} '  # noqa: S608 - names of our own model, no input
            f'ON CONFLICT ("namespace", "key") DO UPDATE SET '
            f'"count" = CASE WHEN {ended} THEN excluded."count" ELSE {table}."count" + excluded."count" END, '
            f'"ends_at" = CASE WHEN {ended} THEN excluded."ends_at" ELSE {table}."ends_at" END '
            f'RETURNING "key", "count", "ends_at"'
        )
        with connections[self._alias].cursor() as cursor:
            cursor.execute(statement, parameters)
            return {key: Window(count, ends_at) for key, count, ends_at in cursor.fetchall()}

    def windows(self, keys: list[str]) -> dict[str, Window]:
        """Return the windows of ``keys`` that have not ended."""
        rows = self._rows().filter(key__in=keys, ends_at__gt=time.time())
        return {key: Window(count, ends_at) for key, count, ends_at in rows.values_list("key", "count", "ends_at")}

    def take_back(self, keys: list[str]) -> None:
        """Take one off the counts of ``keys``."""
        self._rows().filter(key__in=keys, count__gt=0).update(count=F("count") - 1)

    def forget(self, keys: list[str]) -> None:
        """Delete the counts of ``keys``."""
        self._rows().filter(key__in=keys).delete()

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Add ``amount``, and return the count; ``expiry`` is how many seconds a window lasts."""
        return self.add({key: (amount, expiry)})[key].count

    def get(self, key: str) -> int:
        """Return the count."""
        window = self.windows([key]).get(key)
        return window.count if window else 0

    def get_expiry(self, key: str) -> float:
        """Return when the window ends, in seconds since 1970: now where there is none."""
        window = self.windows([key]).get(key)
        return window.ends_at if window else time.time()

    def check(self) -> bool:
        """Return whether the table can be read."""
        try:
            self._rows().exists()
        except Error:
            return False
        return True

    def reset(self) -> int | None:
        """Delete all counts of the environment, and return how many there were."""
        return self._rows().delete()[0]

    def clear(self, key: str) -> None:
        """Delete one count."""
        self.forget([key])

    def _rows(self) -> QuerySet[RequestCount]:
        return RequestCount.objects.using(self._alias).filter(namespace=self._namespace)

    def _tidy(self) -> None:
        """Delete what has ended, and the lowest counts where there are too many: those are of the least use."""
        delete_ended(self._alias)
        excess = self._rows().count() - self._most_rows
        while excess > 0:
            lowest = self._rows().order_by("count", "ends_at").values_list("pk", flat=True)
            deleted, _ = self._rows().filter(pk__in=list(lowest[: min(excess, _TIDY_EVERY)])).delete()
            if not deleted:
                return
            excess -= deleted


def delete_ended(alias: str) -> int:
    """Delete the counts in the database ``alias`` whose windows have ended; return how many there were."""
    return RequestCount.objects.using(alias).filter(ends_at__lte=time.time()).delete()[0]
