"""One run over what people are to be told: fan the outbox out, then deliver what is due, many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from time import monotonic
from typing import Any, Final

from django.conf import settings

from submissions.notification_models import NotificationDelivery, NotificationEvent, NotificationSubscription
from submissions.notifications.audience import accounts_of, may_hear
from submissions.notifications.claims import claim, count_due, lease, settle, withhold
from submissions.notifications.disabled_mails import send_disabled
from submissions.notifications.errors import SecretUnreadable
from submissions.notifications.fan_out import fan_out, forget_old, new_key, waiting_events
from submissions.notifications.mail_delivery import send_mails
from submissions.notifications.password_mails import send_password_mails
from submissions.notifications.room import AT_ONCE
from submissions.notifications.rotation import forget_earlier, signing_secrets
from submissions.notifications.send import Answer, post
from submissions.notifications.senders import Senders
from submissions.notifications.signing import signed_headers
from submissions.notifications.subscriptions import subscription
from submissions.notifications.texts import TEST, body_of
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now
from vskill.kv.threads import readers, writers
from vskill.processes.last_runs import note_run
from vskill.worker_context import require_worker_env

WORK: Final = "deliver"


@dataclass
class DeliverReport:
    """What a run did: ``events`` taken out of the outbox, and the deliveries ``made`` of them.

    Of the deliveries that were due it ``delivered`` some; ``retried`` are due again later, ``failed`` are given up, and
    ``lost`` were another process's by then; ``mails`` were sent. In a dry run ``events`` and ``due`` are what waits.
    """

    environment: str
    events: int = 0
    made: int = 0
    due: int = 0
    delivered: int = 0
    retried: int = 0
    failed: int = 0
    lost: int = 0
    mails: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return plain values for ``json.dumps``."""
        return asdict(self)

    def count(self, states: Iterable[str]) -> None:
        """Count deliveries that came to these states."""
        for state in states:
            self.delivered += state == NotificationDelivery.DELIVERED
            self.retried += state == NotificationDelivery.PENDING
            self.failed += state == NotificationDelivery.FAILED
            self.lost += state == "lost"


async def deliver(
    *,
    limit: int | None = None,
    seconds: float = 20.0,
    dry_run: bool = False,
    progress: Callable[[int, int], object] = lambda _done, _total: None,
) -> DeliverReport:
    """Tell people of what happened in the current environment, and return what was done.

    At most ``limit`` webhooks are attempted, and none is begun after ``seconds``. ``progress`` gets the number of
    those that are done and of all. Any number of runs share the work: each delivery is leased to one. ``dry_run`` only
    counts. Raises ``WorkerEnvMissing`` outside a scope, and MachineFault.
    """
    env = require_worker_env()
    report = DeliverReport(env.name)
    if dry_run:
        report.events = await readers.run(waiting_events, env)
        report.due = await readers.run(count_due, env)
        return report
    ends_at = monotonic() + seconds
    while monotonic() < ends_at:
        events, made = await writers.run(fan_out, env)
        report.events += events
        report.made += made
        if not events:
            break
    report.due = await readers.run(count_due, env)
    # Beside the webhooks, on a thread, so that a slow mail server holds none of them up.
    mails = asyncio.ensure_future(writers.run(_send_mails, env, ends_at))
    try:
        await _Run(env, report, limit, ends_at, progress).all()
    finally:
        # What has begun on a thread runs to its end.
        report.mails, states = await mails
    report.count(states)
    await writers.run(forget_old, env)
    await writers.run(forget_earlier, env)
    await note_run(env, WORK, report.as_json(), ended_at=await readers.run(database_now, env.database))
    return report


class _Run:
    """One run over the deliveries that are due."""

    def __init__(
        self,
        env: WorkerEnv,
        report: DeliverReport,
        limit: int | None,
        ends_at: float,
        progress: Callable[[int, int], object],
    ) -> None:
        self._env, self._report, self._progress = env, report, progress
        self._left = limit if limit is not None else report.due
        self._ends_at = ends_at
        self._begun: dict[asyncio.Task[str], NotificationDelivery] = {}
        self._done = 0

    async def all(self) -> None:
        """Attempt them, some at once, until nothing is due or the time is up."""
        async with Senders(AT_ONCE) as senders:
            try:
                while True:
                    await self._begin(senders)
                    if not self._begun:
                        return
                    ended, _ = await asyncio.wait(self._begun, return_when=asyncio.FIRST_COMPLETED)
                    for task in ended:
                        self._count(task)
            finally:
                for task in self._begun:
                    task.cancel()
                await asyncio.gather(*self._begun, return_exceptions=True)

    async def _begin(self, senders: Senders) -> None:
        if self._left <= 0 or len(self._begun) >= AT_ONCE or monotonic() >= self._ends_at:
            return
        begun = [one.subscription for one in self._begun.values()]
        for one in await writers.run(claim, self._env, begun, self._left):
            self._left -= 1
            self._begun[asyncio.create_task(attempt(self._env, one, senders))] = one

    def _count(self, task: asyncio.Task[str]) -> None:
        del self._begun[task]
        self._report.count([task.result()])
        self._done += 1
        self._progress(self._done, max(self._report.due, self._done))


async def attempt(env: WorkerEnv, one: NotificationDelivery, senders: Senders) -> str:
    """Attempt a leased delivery once, and return the state that it is in then."""
    if not await readers.run(_still_told, env, one):
        return await writers.run(withhold, env, one, "its owner may not see it any more")
    answer = await _sent(env, one, senders)
    return await writers.run(settle, env, one, answer)


async def _sent(env: WorkerEnv, one: NotificationDelivery, senders: Senders) -> Answer:
    receiver = one.subscription
    try:
        now, secrets = await readers.run(_now_and_secrets, env, receiver)
    except SecretUnreadable as error:
        return Answer(None, 0, error=str(error))
    body = body_of(env, one.event)
    headers = signed_headers(secrets, one.key, int(now.timestamp()), body)
    return await post(env, receiver.url, headers, body, senders=senders, of_operators=receiver.owner_id is None)


def _now_and_secrets(env: WorkerEnv, receiver: NotificationSubscription) -> tuple[datetime, list[str]]:
    now = database_now(env.database)
    return now, signing_secrets(receiver, now)


def _send_mails(env: WorkerEnv, ends_at: float) -> tuple[int, list[str]]:
    told = send_password_mails(env) + send_disabled(env) if settings.MAIL_SERVER else 0
    sent, states = send_mails(env, ends_at=ends_at)
    return told + sent, states


def _still_told(env: WorkerEnv, one: NotificationDelivery) -> bool:
    """Return whether the owner may be told still: a role may have ended since the event."""
    owner = one.subscription.owner_id
    return owner is None or one.event.kind == TEST or may_hear(env, accounts_of([owner]).get(owner), one.event)


async def send_test(env: WorkerEnv, number: int) -> tuple[str, NotificationDelivery]:
    """Send a webhook an event of the type ``test`` now; return the state it came to, and its delivery with its log.

    Raises ``NoSuchSubscription``.
    """

    def make() -> list[NotificationDelivery]:
        receiver = subscription(env, number)
        key = new_key()
        data: Any = {"test": True}
        event = NotificationEvent.objects.using(env.database).create(
            namespace=env.name, kind=TEST, source=key, fanned_out_at=database_now(env.database), data=data
        )
        made = NotificationDelivery.objects.using(env.database).create(
            namespace=env.name, event=event, subscription=receiver, key=key
        )
        return lease(env, [made.pk])

    [one] = await writers.run(make)
    async with Senders(1) as senders:
        state = await attempt(env, one, senders)
    return state, await readers.run(_again, env, one.pk)


def _again(env: WorkerEnv, number: int) -> NotificationDelivery:
    return NotificationDelivery.objects.using(env.database).select_related("event", "subscription").get(pk=number)
