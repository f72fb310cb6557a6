"""Slow down whoever guesses passwords, without locking anybody out.

Failed attempts are counted for an hour: of an address at one account, of an address at all accounts, and of one account
from all addresses. Past a number of free failures, the next attempt has to wait, and each further failure doubles that.
A refused attempt is not counted, so knocking does not prolong the wait.

A stranger could keep an account waiting from many addresses, or an office from inside. So the wait of an account stays
short, and a browser in which the account has logged in before has a count of its own instead of all these.

An attempt is counted as failed before its password is checked, and taken back if it succeeds: attempts that arrive at
once cannot all pass. Nothing here depends on whether the account exists.
"""

from __future__ import annotations

import hashlib
import math
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from django.db import DEFAULT_DB_ALIAS

from vskill.rate_limits.stored_counts import StoredCounts

# Django keeps the accounts of all environments in this database; a guess counts whichever host it is sent to.
NAMESPACE: Final = "(logins)"
_WINDOW: Final = 3600.0


@dataclass(frozen=True)
class _Subject:
    """Whose failures are counted, how many are ``free`` in an hour, and the ``longest`` wait in seconds."""

    name: str
    free: int
    longest: float

    @property
    def failures(self) -> str:
        return f"failures/{self.name}"

    @property
    def wait(self) -> str:
        return f"wait/{self.name}"

    def seconds(self, failures: int) -> float:
        """Return how long to wait after so many failures."""
        beyond = failures - self.free
        # The exponent is bounded, because a power of 2 may be too large for a float.
        return 0.0 if beyond < 0 else min(self.longest, 2.0 ** min(beyond, 30))


@dataclass(frozen=True)
class Attempt:
    """One attempt to log in: the account as it was typed, the client, and the proof of an earlier login or ``""``.

    ``known`` is a text that only a browser has in which this account has logged in before.
    """

    account: str
    client: str
    known: str = ""

    def subjects(self) -> Iterator[_Subject]:
        """Yield whose failures an attempt counts among; the first is the one that a success forgets."""
        if self.known:
            yield _Subject(f"browser/{_digest(self.account, self.known)}", 5, 900)
            return
        yield _Subject(f"pair/{_digest(self.account, self.client)}", 5, 900)
        # A team behind one address shares this one.
        yield _Subject(f"client/{_digest(self.client)}", 50, 900)
        yield _Subject(f"account/{_digest(self.account)}", 20, 30)


def _digest(*parts: str) -> str:
    """Return a name for what was typed, which is sometimes a password by mistake and so is not stored."""
    text = "\0".join(unicodedata.normalize("NFKC", part) for part in parts)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def begin(attempt: Attempt) -> int:
    """Count an attempt, and return the seconds that it has to wait: 0 where its password may be checked now."""
    counts = _counts()
    subjects = list(attempt.subjects())
    if waits := counts.windows([subject.wait for subject in subjects]):
        return _whole(max(window.ends_at for window in waits.values()))
    failures = counts.add({subject.failures: (1, _WINDOW) for subject in subjects})
    waits = counts.add(
        {
            subject.wait: (1, seconds)
            for subject in subjects
            if (seconds := subject.seconds(failures[subject.failures].count)) > 0
        }
    )
    # A second attempt at the same moment finds the wait that the first has begun.
    taken = [window.ends_at for window in waits.values() if window.count > 1]
    return _whole(max(taken)) if taken else 0


def succeeded(attempt: Attempt) -> None:
    """Forget the failures of this client at this account, and take the attempt back everywhere else."""
    counts = _counts()
    own, *others = attempt.subjects()
    counts.forget([own.failures, own.wait, *(subject.wait for subject in others)])
    counts.take_back([subject.failures for subject in others])


@cache
def _counts() -> StoredCounts:
    return StoredCounts(DEFAULT_DB_ALIAS, NAMESPACE)


def _whole(ends_at: float) -> int:
    return max(1, math.ceil(ends_at - time.time()))
