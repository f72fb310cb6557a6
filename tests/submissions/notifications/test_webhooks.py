"""Webhooks are signed, sent under guards, retried, given up and shown; a slow receiver holds up nobody."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings as present
from django.db.models import F
from pytest_django.fixtures import Settings
from standardwebhooks import Webhook, WebhookVerificationError

from submissions.notification_models import (
    DeliveryAttempt,
    NotificationDelivery,
    NotificationEvent,
    NotificationSubscription,
)
from submissions.notifications.claims import LEASE, MOST_ATTEMPTS, redeliver, wait_after
from submissions.notifications.deliver import DeliverReport, deliver
from submissions.notifications.errors import NoSuchSubscription, SubscriptionRefused
from submissions.notifications.send import Answer, post
from submissions.notifications.senders import Senders
from submissions.notifications.signing import opened
from submissions.notifications.subscriptions import Scope, Wish, add_webhook, enable
from submissions.outbox import Kind
from submissions.states import State
from tests.submissions.notifications.receiver import Receiver, drips, floods, receiver, says, stays_silent
from tests.submissions.notifications.told import end, let_days_pass, make_due, person, run_deliver
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now
from vskill.worker_context import run_with_worker_env

pytestmark = pytest.mark.django_db(transaction=True)
ALL = Wish(list(Kind))


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as one:
        yield one


@pytest.fixture
def inside(env: WorkerEnv, hook: Receiver) -> WorkerEnv:
    """Return an environment whose webhooks may go to the receiver."""
    return hook.trusted_by(env)


def add(env: WorkerEnv, hook: Receiver, path: str = "/hook") -> str:
    """Add a webhook of the operators, and return its secret."""
    return add_webhook(env, hook.url(path), ALL, created_by="root")[1]


def only() -> NotificationDelivery:
    return NotificationDelivery.objects.get()


class TestSignature:
    def test_a_public_verifier_accepts_what_is_sent_and_nothing_that_was_changed(
        self, inside: WorkerEnv, hook: Receiver
    ) -> None:
        secret = add(inside, hook)
        held = end(inside, reason="It reads \N{SNOWMAN} keys.", skillName="notes")
        assert run_deliver(inside).delivered == 1
        [taken] = hook.taken
        document: Any = Webhook(secret).verify(taken.body, taken.headers)
        assert document["type"] == "submission.held"
        assert document["data"]["submissionId"] == held.id
        assert document["data"]["reason"] == "It reads \N{SNOWMAN} keys."
        assert document["data"]["url"] == f"{inside.public_url}/submissions/{held.id}"
        for changed in (
            {**taken.headers, "webhook-id": "msg_other"},
            {**taken.headers, "webhook-timestamp": str(int(taken.headers["webhook-timestamp"]) + 1)},
        ):
            with pytest.raises(WebhookVerificationError):
                Webhook(secret).verify(taken.body, changed)
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(taken.body.replace(b"held", b"fine"), taken.headers)

    def test_a_secret_is_stored_sealed_and_another_key_of_the_installation_does_not_open_it(
        self, inside: WorkerEnv, hook: Receiver, settings: Settings
    ) -> None:
        secret = add(inside, hook)
        stored = NotificationSubscription.objects.get().secret
        assert secret not in stored
        assert opened(stored) == secret
        end(inside)
        settings.SECRET_KEY = f"another {present.SECRET_KEY}"
        assert run_deliver(inside).retried == 1
        assert "another VSKILL_SECRET_KEY" in only().said
        assert hook.taken == []


class TestAttempts:
    def test_one_that_fails_is_sent_again_under_the_same_id_until_it_is_taken(
        self, inside: WorkerEnv, hook: Receiver
    ) -> None:
        add(inside, hook)
        hook.answers["/hook"] = says(500, "<b>\N{RIGHT-TO-LEFT OVERRIDE}broken</b>")
        end(inside)
        assert run_deliver(inside).retried == 1
        # Before its time has come, nothing is sent.
        assert run_deliver(inside).due == 0
        [first] = DeliveryAttempt.objects.all()
        assert (first.status, first.answer) == (500, "<b>\\u{202e}broken</b>")
        assert NotificationSubscription.objects.get().failing_since is not None
        del hook.answers["/hook"]
        make_due()
        assert run_deliver(inside).delivered == 1
        assert len({one.headers["webhook-id"] for one in hook.taken}) == 1
        assert [one.status for one in DeliveryAttempt.objects.order_by("id")] == [500, 204]
        assert NotificationSubscription.objects.get().failing_since is None

    def test_it_is_given_up_after_about_a_day_and_sent_again_by_hand(self, inside: WorkerEnv, hook: Receiver) -> None:
        add(inside, hook)
        hook.answers["/hook"] = says(503)
        end(inside)
        for _attempt in range(MOST_ATTEMPTS - 1):
            assert run_deliver(inside).retried == 1
            make_due()
        assert run_deliver(inside).failed == 1
        assert (only().state, only().attempts, only().said) == ("failed", 9, "answered with status 503")
        make_due()
        assert run_deliver(inside).due == 0
        redeliver(inside, only().pk)
        del hook.answers["/hook"]
        assert run_deliver(inside).delivered == 1
        assert len({one.headers["webhook-id"] for one in hook.taken}) == 1

    def test_the_waits_grow_and_together_are_about_a_day(self) -> None:
        waits = [wait_after(number) for number in range(1, MOST_ATTEMPTS)]
        assert waits == sorted(waits)
        assert timedelta(hours=20) < sum(waits, timedelta()) < timedelta(hours=34)
        assert len({wait_after(1) for _ in range(10)}) > 1

    def test_a_receiver_that_fails_for_days_is_disabled_with_a_word_until_somebody_enables_it(
        self, inside: WorkerEnv, hook: Receiver, caplog: pytest.LogCaptureFixture
    ) -> None:
        add(inside, hook)
        hook.answers["/hook"] = says(500)
        end(inside)
        run_deliver(inside)
        end(inside, repoUrl="https://github.com/acme/two")
        let_days_pass(3)
        run_deliver(inside)
        one = NotificationSubscription.objects.get()
        assert one.disabled_at is not None
        assert "nothing could be delivered since" in one.disabled_because
        assert "is disabled" in caplog.text
        assert set(NotificationDelivery.objects.values_list("state", flat=True)) == {"failed"}
        end(inside, repoUrl="https://github.com/acme/three")
        assert run_deliver(inside).made == 0
        with pytest.raises(NoSuchSubscription, match="Enable it first"):
            redeliver(inside, NotificationDelivery.objects.order_by("id")[0].pk)
        enable(inside, one)
        del hook.answers["/hook"]
        end(inside, repoUrl="https://github.com/acme/four")
        assert run_deliver(inside).delivered == 1

    def test_a_receiver_that_wants_no_more_is_disabled_at_once(self, inside: WorkerEnv, hook: Receiver) -> None:
        add(inside, hook)
        hook.answers["/hook"] = says(410)
        end(inside)
        assert run_deliver(inside).failed == 1
        assert "410" in NotificationSubscription.objects.get().disabled_because

    def test_whose_role_has_ended_since_the_event_is_not_told(self, inside: WorkerEnv, hook: Receiver) -> None:
        rita = person("rita", "reviewer")
        add_webhook(inside, "https://hooks.example.org/in", ALL, created_by="rita", owner=rita)
        end(inside)
        run_deliver(inside, limit=0)
        rita.role_grants.all().delete()
        assert run_deliver(inside).failed == 1
        assert hook.taken == []
        assert NotificationSubscription.objects.get().disabled_at is None


class TestHostileReceivers:
    async def _post(self, env: WorkerEnv, url: str) -> Answer:
        async with Senders(1) as senders:
            return await post(env, url, {}, b"{}", senders=senders, of_operators=True, seconds=1.0)

    async def test_a_slow_drip_is_left_after_the_time_limit(self, inside: WorkerEnv, hook: Receiver) -> None:
        hook.answers["/hook"] = drips
        answer = await self._post(inside, hook.url())
        assert (answer.status, answer.taken) == (None, False)
        assert "did not answer within 1 seconds" in answer.said

    async def test_of_a_huge_answer_the_first_bytes_are_kept(self, inside: WorkerEnv, hook: Receiver) -> None:
        hook.answers["/hook"] = floods
        answer = await self._post(inside, hook.url())
        assert answer.taken
        assert answer.text.startswith("<script>")
        assert len(answer.text) <= 1024

    @pytest.mark.parametrize("target", ["https://169.254.169.254/latest/meta-data/", "/other"])
    async def test_a_redirect_is_not_followed(self, inside: WorkerEnv, hook: Receiver, target: str) -> None:
        hook.answers["/hook"] = says(307, Location=target)
        answer = await self._post(inside, hook.url())
        assert not answer.taken
        assert answer.said == "answered with status 307, a redirect, which is not followed"
        assert [one.path for one in hook.taken] == ["/hook"]

    async def test_a_certificate_of_nobody_who_is_trusted_gets_nothing(self, env: WorkerEnv, hook: Receiver) -> None:
        untrusting = replace(hook.trusted_by(env), policy=replace(hook.trusted_by(env).policy, source_ca_file=""))
        answer = await self._post(untrusting, hook.url())
        assert answer.said == "the certificate of its host could not be verified"
        assert hook.taken == []

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "169.254.169.254", "[::ffff:10.0.0.1]", "0x7f.1"])
    async def test_a_private_address_gets_nothing_unless_the_policy_lists_it(
        self, env: WorkerEnv, hook: Receiver, host: str
    ) -> None:
        answer = await self._post(env, f"https://{host}:{hook.port}/hook")
        assert answer.status is None
        assert "not on the public internet" in answer.said
        assert hook.taken == []

    async def test_a_host_that_closes_at_once_is_unreachable(self, inside: WorkerEnv, hook: Receiver) -> None:
        async def closes(writer: asyncio.StreamWriter) -> None:
            writer.close()

        hook.answers["/hook"] = closes
        assert (await self._post(inside, hook.url())).said == "its host could not be reached"


class TestPersons:
    def test_the_private_hosts_of_the_policy_are_for_operators_alone(self, inside: WorkerEnv, hook: Receiver) -> None:
        ada = person("ada")
        with pytest.raises(SubscriptionRefused, match="not on the public internet") as refused:
            add_webhook(inside, hook.url(), ALL, created_by="ada", owner=ada)
        assert "webhook_private_hosts" not in str(refused.value)
        # One whose name led to a public address when it was added.
        add_webhook(inside, "https://hooks.example.org/in", ALL, created_by="ada", owner=ada)
        NotificationSubscription.objects.update(url=hook.url("/of-ada"))
        add(inside, hook, "/of-operators")
        end(inside, submitterAccount="ada")
        report = run_deliver(inside)
        assert (report.delivered, report.retried) == (1, 1)
        assert [one.path for one in hook.taken] == ["/of-operators"]

    async def test_what_is_private_and_what_does_not_exist_are_told_alike(
        self, inside: WorkerEnv, hook: Receiver
    ) -> None:
        async with Senders(1) as senders:
            said = {
                (await post(inside, url, {}, b"{}", senders=senders, of_operators=False, seconds=5.0)).said
                for url in (hook.url(), "https://no-such-host.invalid/hook")
            }
        assert said == {"its host was not found on the public internet, so nothing was sent"}
        assert hook.taken == []


class TestManyAtOnce:
    def test_a_silent_receiver_holds_up_nobody(self, inside: WorkerEnv, hook: Receiver) -> None:
        add(inside, hook, "/silent")
        add(inside, hook, "/quick")
        hook.answers["/silent"] = stays_silent
        for number in range(6):
            end(inside, repoUrl=f"https://github.com/acme/{number}")

        def quick() -> int:
            return sum(one.path == "/quick" for one in hook.taken)

        async def until_the_quick_one_has_all() -> None:
            run = asyncio.ensure_future(run_with_worker_env(inside, deliver))
            try:
                async with asyncio.timeout(60):
                    # Both, because nothing says which of the two receivers is asked first.
                    while quick() < 6 or hook.at_once.get("/silent", 0) < 2:  # noqa: ASYNC110 - another thread takes
                        await asyncio.sleep(0.01)
                assert not run.done()
            finally:
                run.cancel()
                await asyncio.gather(run, return_exceptions=True)

        async_to_sync(until_the_quick_one_has_all)()
        assert hook.most_at_once["/silent"] == 2

    async def test_two_runs_at_once_deliver_each_once(self, inside: WorkerEnv, hook: Receiver) -> None:
        await sync_to_async(add)(inside, hook)
        for number in range(12):
            await sync_to_async(end)(inside, repoUrl=f"https://github.com/acme/{number}")
        reports: list[DeliverReport] = list(
            await asyncio.gather(*(run_with_worker_env(inside, deliver) for _ in range(3)))
        )
        assert sum(one.delivered for one in reports) == 12
        ids = [one.headers["webhook-id"] for one in hook.taken]
        assert len(ids) == len(set(ids)) == 12

    def test_what_a_dead_process_had_leased_is_sent_after_the_lease(self, inside: WorkerEnv, hook: Receiver) -> None:
        add(inside, hook)
        end(inside)
        run_deliver(inside, limit=0)
        leased = NotificationDelivery.objects.filter(pk=only().pk)
        leased.update(lease_token="dead", leased_until=database_now("default") + LEASE)
        assert run_deliver(inside).due == 0
        leased.update(leased_until=database_now("default"))
        assert run_deliver(inside).delivered == 1


def test_what_was_told_long_ago_is_forgotten_with_its_log(inside: WorkerEnv, hook: Receiver) -> None:
    add(inside, hook)
    end(inside)
    run_deliver(inside)
    NotificationEvent.objects.update(created_at=F("created_at") - timedelta(days=91))
    end(inside, State.REJECTED)
    run_deliver(inside)
    assert [one.kind for one in NotificationEvent.objects.all()] == ["refused"]
    assert DeliveryAttempt.objects.count() == 1


def test_the_body_says_nothing_of_who_submitted(inside: WorkerEnv, hook: Receiver) -> None:
    add_webhook(inside, hook.url(), Wish([Kind.HELD], Scope.EVERYTHING), created_by="root")
    end(inside, submittedBy="ada-the-submitter", submitterAccount="ada-the-submitter")
    run_deliver(inside)
    [taken] = hook.taken
    assert b"ada-the-submitter" not in taken.body
    assert set(json.loads(taken.body)) == {"type", "timestamp", "data"}
