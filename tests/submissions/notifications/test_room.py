"""The room for webhooks is shared: the slow ones of an account hold up neither operators nor other accounts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from submissions.notification_models import NotificationDelivery, NotificationSubscription
from submissions.notifications.claims import claim
from submissions.notifications.fan_out import fan_out
from submissions.notifications.room import AT_ONCE, OF_ACCOUNTS, OF_ONE_ACCOUNT, OF_ONE_HOST, host_of
from submissions.notifications.subscriptions import Wish, add_webhook
from submissions.outbox import Kind
from submissions.states import State
from tests.submissions.notifications.told import end, person
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now

pytestmark = pytest.mark.django_db(transaction=True)


def webhooks(env: WorkerEnv, owner: Any, *hosts: str) -> None:
    for host in hosts:
        name = owner.get_username() if owner is not None else "root"
        add_webhook(env, f"https://{host}/{name}", Wish(list(Kind)), created_by=name, owner=owner)


def happens(env: WorkerEnv, times: int = 1) -> None:
    """Let a skill be held so many times, and a delivery of that wait for everybody."""
    for number in range(times):
        end(env, State.ON_HOLD, repoUrl=f"https://github.com/acme/{number}")
    fan_out(env)


def begun_with(claimed: list[NotificationDelivery]) -> list[NotificationSubscription]:
    return [one.subscription for one in claimed]


def test_an_account_with_many_webhooks_has_a_share_and_others_have_theirs(env: WorkerEnv) -> None:
    for name in ("ada", "bob"):
        webhooks(env, person(name, "reviewer"), *(f"{name}{number}.example.org" for number in range(5)))
    happens(env, 4)
    claimed = claim(env, [], AT_ONCE)
    assert Counter(one.subscription.owner for one in claimed) == {"ada": OF_ONE_ACCOUNT, "bob": OF_ONE_ACCOUNT}
    assert claim(env, begun_with(claimed), AT_ONCE) == []
    [again] = claim(env, begun_with(claimed)[1:], AT_ONCE)
    assert again.subscription.owner == claimed[0].subscription.owner


def test_many_accounts_leave_room_for_operators_and_hide_them_from_nobody(env: WorkerEnv) -> None:
    for number in range(6):
        owner = person(f"p{number}", "reviewer")
        webhooks(env, owner, *(f"{number}{letter}.example.org" for letter in "abcde"))
    happens(env, 2)
    claimed = claim(env, [], AT_ONCE)
    assert len(claimed) == OF_ACCOUNTS
    assert claim(env, begun_with(claimed), AT_ONCE) == []
    webhooks(env, None, "one.example.net", "two.example.net")
    happens(env)
    later = claim(env, begun_with(claimed), AT_ONCE)
    assert [(one.subscription.owner_id, host_of(one.subscription.url)) for one in later] == [
        (None, "one.example.net"),
        (None, "two.example.net"),
    ]


def test_one_host_that_many_accounts_have_chosen_has_a_share(env: WorkerEnv) -> None:
    for number in range(6):
        webhooks(env, person(f"p{number}", "reviewer"), "slow.example.org")
    happens(env, 2)
    assert len(claim(env, [], AT_ONCE)) == OF_ONE_HOST


def test_failing_ones_of_accounts_leave_room_for_failing_ones_of_operators(env: WorkerEnv) -> None:
    for number in range(8):
        webhooks(env, person(f"p{number}", "reviewer"), f"{number}.example.org")
    webhooks(env, None, *(f"{number}.example.net" for number in range(3)))
    happens(env, 2)
    NotificationSubscription.objects.update(failing_since=database_now("default"))
    claimed = claim(env, [], AT_ONCE)
    of_operators = sum(one.subscription.owner_id is None for one in claimed)
    assert len(claimed) == 6
    assert of_operators >= 2


def test_no_more_begins_than_is_asked_for(env: WorkerEnv) -> None:
    webhooks(env, None, "one.example.net", "two.example.net")
    happens(env, 2)
    assert len(claim(env, [], 3)) == 3
