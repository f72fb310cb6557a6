"""A receiver that asks for a rest is left alone until then, within bounds, and nobody else waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from django.db.models import F

from submissions.notification_models import NotificationDelivery, NotificationSubscription
from submissions.notifications.claims import wait_after
from submissions.notifications.listing import state_of
from submissions.notifications.rest import LONGEST_REST, rest_asked
from submissions.notifications.send import Answer
from submissions.notifications.subscriptions import Wish, add_webhook, enable
from submissions.outbox import Kind
from tests.submissions.notifications.receiver import Receiver, receiver, says
from tests.submissions.notifications.told import end, make_due, run_deliver
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "said", "rest"),
    [
        (429, "120", timedelta(seconds=120)),
        (503, " 7 ", timedelta(seconds=7)),
        (429, "Mon, 04 May 2026 12:10:00 GMT", timedelta(minutes=10)),
        (429, "Mon, 04 May 2026 12:10:00 -0000", timedelta(minutes=10)),
        (429, "Monday, 04-May-26 12:10:00 GMT", timedelta(minutes=10)),
        # Bounded, whatever it says.
        (429, "999999999", LONGEST_REST),
        (429, "Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_REST),
        # What is over, is no time, or is said with another answer.
        (429, "Mon, 04 May 2026 11:59:59 GMT", None),
        (429, "0", None),
        (429, "-5", None),
        (429, "1e9", None),
        (429, "9" * 60, None),
        (429, "\N{SUPERSCRIPT TWO}", None),
        (429, "soon", None),
        (429, "Mon, 99 May 2026 25:61:00 GMT", None),
        (429, "", None),
        (500, "120", None),
        (301, "120", None),
        (204, "120", None),
    ],
)
def test_what_is_asked_for_is_seconds_or_a_date_within_a_day(status: int, said: str, rest: timedelta | None) -> None:
    assert rest_asked(Answer(status, 1, retry_after=said), NOW) == rest


def test_without_an_answer_nothing_is_asked_for() -> None:
    assert rest_asked(Answer(None, 1, error="its host could not be reached"), NOW) is None


@pytest.mark.django_db(transaction=True)
class TestDelivery:
    @pytest.fixture
    def hook(self) -> Iterator[Receiver]:
        with receiver() as one:
            yield one

    @pytest.fixture
    def inside(self, env: WorkerEnv, hook: Receiver) -> WorkerEnv:
        here = hook.trusted_by(env)
        for path in ("/busy", "/free"):
            add_webhook(here, hook.url(path), Wish(list(Kind)), created_by="root")
        return here

    def paths(self, hook: Receiver) -> list[str]:
        return sorted(one.path for one in hook.taken)

    def let_pass(self, time: timedelta) -> None:
        """Let time pass, for what is due and for who rests."""
        NotificationDelivery.objects.update(due_at=F("due_at") - time)
        NotificationSubscription.objects.exclude(rest_until=None).update(rest_until=F("rest_until") - time)

    @pytest.mark.parametrize("as_date", [False, True])
    def test_all_that_waits_for_it_waits_until_then_and_others_get_theirs(
        self, inside: WorkerEnv, hook: Receiver, as_date: bool
    ) -> None:
        then = format_datetime(database_now("default") + timedelta(hours=2), usegmt=True) if as_date else "7200"
        hook.answers["/busy"] = says(429, **{"Retry-After": then})
        end(inside)
        assert run_deliver(inside).delivered == 1
        del hook.answers["/busy"]
        waits = NotificationDelivery.objects.get(subscription__url=hook.url("/busy"))
        assert "asks for a rest until" in waits.said
        assert timedelta(minutes=119) < waits.due_at - database_now("default") <= timedelta(hours=2)
        busy = NotificationSubscription.objects.get(url=hook.url("/busy"))
        assert "left alone until" in state_of(busy, database_now("default"))
        # One that was never attempted waits too; the other receiver gets it at once.
        end(inside, repoUrl="https://github.com/acme/two")
        self.let_pass(timedelta(minutes=110))
        assert run_deliver(inside).delivered == 1
        assert self.paths(hook) == ["/busy", "/free", "/free"]
        self.let_pass(timedelta(minutes=20))
        assert run_deliver(inside).delivered == 2
        busy.refresh_from_db()
        assert state_of(busy, database_now("default")) == "in order"

    def test_a_short_rest_makes_no_attempt_earlier(self, inside: WorkerEnv, hook: Receiver) -> None:
        hook.answers["/busy"] = says(503, **{"Retry-After": "1"})
        end(inside)
        run_deliver(inside)
        waits = NotificationDelivery.objects.get(subscription__url=hook.url("/busy"))
        assert waits.due_at - database_now("default") > min(wait_after(1) for _ in range(50)) / 2

    def test_the_header_counts_with_no_other_answer(self, inside: WorkerEnv, hook: Receiver) -> None:
        hook.answers["/busy"] = says(500, **{"Retry-After": "7200"})
        end(inside)
        run_deliver(inside)
        assert set(NotificationSubscription.objects.values_list("rest_until", flat=True)) == {None}
        make_due()
        assert run_deliver(inside).retried == 1

    def test_whoever_enables_a_webhook_ends_its_rest(self, inside: WorkerEnv, hook: Receiver) -> None:
        hook.answers["/busy"] = says(429, **{"Retry-After": "7200"})
        end(inside)
        run_deliver(inside)
        del hook.answers["/busy"]
        enable(inside, NotificationSubscription.objects.get(url=hook.url("/busy")))
        make_due()
        assert run_deliver(inside).delivered == 1
