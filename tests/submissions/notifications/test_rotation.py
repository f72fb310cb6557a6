"""A webhook gets a new secret without a gap: for a time both sign, and the one before ends by itself or by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as present
from django.core.management.base import CommandError
from django.db import connections
from django.db.models import F
from django.test import Client
from pytest_django.fixtures import Settings
from standardwebhooks import Webhook, WebhookVerificationError

from submissions.notification_models import EarlierSecret, NotificationSubscription
from submissions.notifications.errors import NoSuchSubscription, SubscriptionRefused
from submissions.notifications.rotation import MOST_EARLIER, end_earlier, rotate
from submissions.notifications.subscriptions import Way, Wish, add, add_webhook, remove
from submissions.outbox import Kind
from tests.submissions.commands.run import run
from tests.submissions.notifications.receiver import Receiver, Taken, receiver
from tests.submissions.notifications.told import end, person, run_deliver
from tests.submissions.source.https_host import CERTIFICATE
from vskill.environments import WorkerEnv, get_environment

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/account/notifications"
ALL = Wish(list(Kind))


@pytest.fixture
def hook(settings: Settings) -> Iterator[Receiver]:
    """Yield a receiver that the environment ``default`` may send to."""
    with receiver() as one:
        policy = {"webhook_private_hosts": [f"127.0.0.1:{one.port}"], "source_ca_file": str(CERTIFICATE)}
        settings.VSKILL_ENVIRONMENTS = {"default": {"hosts": ["*"], "policy": policy}}
        yield one


@pytest.fixture
def here(hook: Receiver) -> WorkerEnv:
    return get_environment("default")


def sent_by(env: WorkerEnv, hook: Receiver) -> Taken:
    """Let something happen, and return what was sent of it."""
    end(env, repoUrl=f"https://github.com/acme/{len(hook.taken)}")
    assert run_deliver(env).delivered == 1
    return hook.taken[-1]


def takes(secret: str, sent: Taken) -> bool:
    """Return whether a receiver that knows one secret takes what was sent, by the public verifier."""
    try:
        Webhook(secret).verify(sent.body, sent.headers)
    except WebhookVerificationError:
        return False
    return True


def let_hours_pass(hours: int) -> None:
    EarlierSecret.objects.update(signs_until=F("signs_until") - timedelta(hours=hours))


def test_both_secrets_sign_until_the_time_of_the_one_before_is_up(here: WorkerEnv, hook: Receiver) -> None:
    one, before = add_webhook(here, hook.url(), ALL, created_by="root")
    after = rotate(here, one, actor="root", hours=24)
    sent = sent_by(here, hook)
    assert len(sent.headers["webhook-signature"].split()) == 2
    assert [takes(secret, sent) for secret in (before, after)] == [True, True]
    assert not takes(before, Taken(sent.path, {**sent.headers, "webhook-id": "msg_other"}, sent.body))
    let_hours_pass(23)
    assert takes(before, sent_by(here, hook))
    let_hours_pass(1)
    sent = sent_by(here, hook)
    assert [takes(secret, sent) for secret in (before, after)] == [False, True]
    # What signs no more is not kept.
    assert not EarlierSecret.objects.exists()


def test_the_one_before_ends_early_by_hand_or_at_once(here: WorkerEnv, hook: Receiver) -> None:
    one, first = add_webhook(here, hook.url(), ALL, created_by="root")
    second = rotate(here, one, actor="root")
    assert end_earlier(here, one, actor="root") is True
    assert end_earlier(here, one, actor="root") is False
    sent = sent_by(here, hook)
    assert [takes(secret, sent) for secret in (first, second)] == [False, True]
    rotate(here, one, actor="root")
    # Of one that somebody else knows, no hour is left.
    last = rotate(here, one, actor="root", hours=0)
    sent = sent_by(here, hook)
    assert [takes(secret, sent) for secret in (second, last)] == [False, True]


def test_one_whose_new_secret_was_lost_is_rotated_again_and_its_receiver_goes_on(
    here: WorkerEnv, hook: Receiver
) -> None:
    one, first = add_webhook(here, hook.url(), ALL, created_by="root")
    *_lost, last = [rotate(here, one, actor="root") for _ in range(MOST_EARLIER)]
    stored = NotificationSubscription.objects.get().secret
    with pytest.raises(SubscriptionRefused, match="sign still"):
        rotate(here, one, actor="root")
    assert NotificationSubscription.objects.get().secret == stored
    sent = sent_by(here, hook)
    assert len(sent.headers["webhook-signature"].split()) == MOST_EARLIER + 1
    assert [takes(secret, sent) for secret in (first, last)] == [True, True]


def test_two_at_once_lose_no_secret(here: WorkerEnv, hook: Receiver) -> None:
    def work(_number: int) -> str:
        try:
            return rotate(here, one, actor="root")
        finally:
            connections.close_all()

    one, first = add_webhook(here, hook.url(), ALL, created_by="root")
    with ThreadPoolExecutor(2) as threads:
        made = list(threads.map(work, range(2)))
    sent = sent_by(here, hook)
    assert [takes(secret, sent) for secret in (first, *made)] == [True, True, True]


def test_secrets_are_stored_sealed_and_forgotten_with_their_webhook(here: WorkerEnv, hook: Receiver) -> None:
    one, before = add_webhook(here, hook.url(), ALL, created_by="root")
    rotate(here, one, actor="root")
    [earlier] = EarlierSecret.objects.all()
    assert before not in earlier.secret
    remove(here, one, actor="root")
    assert not EarlierSecret.objects.exists()
    with pytest.raises(NoSuchSubscription):
        rotate(here, one, actor="root")


def test_one_that_was_sealed_by_another_key_is_rotated_and_signs_again(
    here: WorkerEnv, hook: Receiver, settings: Settings
) -> None:
    one, before = add_webhook(here, hook.url(), ALL, created_by="root")
    settings.SECRET_KEY = f"another {present.SECRET_KEY}"
    after = rotate(here, one, actor="root")
    sent = sent_by(here, hook)
    assert [takes(secret, sent) for secret in (before, after)] == [False, True]
    # And an earlier one that cannot be read holds nothing up.
    rotate(here, one, actor="root")
    EarlierSecret.objects.update(secret="sealed by nobody")
    assert len(sent_by(here, hook).headers["webhook-signature"].split()) == 1


def test_the_command_prints_the_new_secret_once_and_says_how_long_the_one_before_signs(
    here: WorkerEnv, hook: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    added = run("webhook", "add", hook.url(), "--json").document
    number = str(added["id"])
    rotated = run("webhook", "rotate", number, "--hours", "2", "--json").document
    sent = sent_by(here, hook)
    assert [takes(one["secret"], sent) for one in (added, rotated)] == [True, True]
    [listed] = run("webhook", "list", "--json").document["webhooks"]
    assert listed["earlierSecretSignsUntil"] == rotated["earlierSecretSignsUntil"]
    assert "its secret before signs until" in run("webhook", "list").out
    assert "newest secret alone" in run("webhook", "end-earlier", number).out
    assert run("webhook", "list", "--json").document["webhooks"][0]["earlierSecretSignsUntil"] is None
    said = run("webhook", "rotate", number)
    assert said.out.startswith("whsec_")
    assert "signs too until" in said.err
    assert "signs no more" in run("webhook", "rotate", number, "--hours", "0").err
    for hours in ("-1", "169"):
        with pytest.raises(CommandError, match="0 to 168 hours"):
            run("webhook", "rotate", number, "--hours", hours)
    assert rotated["secret"] not in caplog.text
    assert "got a new secret" in caplog.text


def test_the_secret_of_somebody_else_is_not_for_operators_to_see(here: WorkerEnv) -> None:
    url = "https://hooks.example.org/in"
    one, _secret = add_webhook(here, url, ALL, created_by="ada", owner=person("ada"))
    stored = NotificationSubscription.objects.get().secret
    with pytest.raises(CommandError, match="of ada"):
        run("webhook", "rotate", str(one.pk))
    assert NotificationSubscription.objects.get().secret == stored


def test_a_person_rotates_on_the_page_which_tells_the_window_and_ends_it(here: WorkerEnv, client: Client) -> None:
    ada, bob = person("ada"), person("bob")
    url = "https://hooks.example.org/in"
    own = add_webhook(here, url, ALL, created_by="ada", owner=ada)[0]
    of_bob = add_webhook(here, url, ALL, created_by="bob", owner=bob)[0]
    feed = add(here, Way.FEED, ALL, owner=ada)
    client.force_login(ada)
    assert "signs too until" not in client.get(PAGE).content.decode()
    shown = client.post(PAGE, {"do": "rotate", "id": own.pk})
    assert shown["Cache-Control"] == "no-store"
    text = shown.content.decode()
    [secret] = set(re.findall(r"whsec_[A-Za-z0-9+/=]{40,}", text))
    assert "For 24 hours" in text
    later = client.get(PAGE).content.decode()
    assert secret not in later
    assert "its secret before signs too until" in later
    assert client.post(PAGE, {"do": "end-earlier", "id": own.pk}).status_code == 302
    assert "signs too until" not in client.get(PAGE).content.decode()
    for number in (of_bob.pk, feed.pk):
        assert client.post(PAGE, {"do": "rotate", "id": number}).status_code == 400
    rotate(here, of_bob, actor="bob")
    assert client.post(PAGE, {"do": "end-earlier", "id": of_bob.pk}).status_code == 400
    assert EarlierSecret.objects.filter(subscription_id=of_bob.pk).count() == 1


def test_operators_end_it_in_the_admin_and_reviewers_do_not(here: WorkerEnv, hook: Receiver) -> None:
    one, _secret = add_webhook(here, hook.url(), ALL, created_by="root")
    rotate(here, one, actor="root")
    address = "/admin/submissions/notificationsubscription/operate/end-earlier/"
    given: Any = {"ids": one.pk, "reason": "it is known to others"}
    left = []
    for role in ("reviewer", "operator"):
        client = Client()
        client.force_login(person(f"a-{role}", role))
        client.post(address, given)
        left.append(EarlierSecret.objects.count())
    assert left == [1, 0]
