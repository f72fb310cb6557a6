"""How many webhooks are under way at once, and how many of them one receiver, one account and one host may have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from submissions.notification_models import NotificationSubscription

AT_ONCE: Final = 16
OF_ONE_RECEIVER: Final = 2
# Of one that failed last, and of all those together.
_OF_ONE_FAILING: Final = 1
_FAILING: Final = 6
# What is left of all is for the webhooks of operators.
OF_ACCOUNTS: Final = 12
_FAILING_OF_ACCOUNTS: Final = 4
OF_ONE_ACCOUNT: Final = 3
# Of the webhooks of accounts; several may have chosen one slow host.
OF_ONE_HOST: Final = 4


@dataclass(frozen=True)
class Receiver:
    """A webhook as far as it shares the room: its number, its account (``None``: the operators), its host, its health.

    ``fails`` is whether it failed last.
    """

    number: int
    owner_id: int | None
    host: str
    fails: bool


def receiver_of(one: NotificationSubscription) -> Receiver:
    """Return the receiver that a subscription to webhooks is."""
    return Receiver(one.pk, one.owner_id, host_of(one.url), one.failing_since is not None)


def host_of(url: str) -> str:
    """Return the host of the address of a webhook, which was checked as it was added."""
    return urlsplit(url).hostname or ""


class Room:
    """What may begin beside the webhooks that are under way, so that slow ones hold up nobody else's."""

    def __init__(self, begun: Iterable[Receiver]) -> None:
        self._taken: Counter[tuple[str, object]] = Counter()
        for one in begun:
            self.take(one)

    def has_place_for(self, one: Receiver) -> bool:
        """Return whether one more attempt may begin with a receiver."""
        return all(self._taken[share] < most for share, most in _shares(one))

    def take(self, one: Receiver) -> None:
        """Count an attempt with a receiver as begun."""
        self._taken.update(share for share, _most in _shares(one))


def _shares(one: Receiver) -> Iterator[tuple[tuple[str, object], int]]:
    """Yield each share of the room that an attempt with a receiver is part of, and the most of it at once."""
    yield ("all", None), AT_ONCE
    yield ("receiver", one.number), _OF_ONE_FAILING if one.fails else OF_ONE_RECEIVER
    if one.fails:
        yield ("failing", None), _FAILING
    if one.owner_id is not None:
        yield ("accounts", None), OF_ACCOUNTS
        yield ("account", one.owner_id), OF_ONE_ACCOUNT
        yield ("host", one.host), OF_ONE_HOST
        if one.fails:
            yield ("failing accounts", None), _FAILING_OF_ACCOUNTS
