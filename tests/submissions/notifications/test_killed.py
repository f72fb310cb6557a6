"""Wherever a process is killed, what happened is told, and a repeat is known by its id."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async
from django.db.models import F
from pytest_django.fixtures import Settings

from submissions.models import SubmissionEntry
from submissions.notification_models import NotificationDelivery, NotificationEvent, NotificationPreference
from submissions.notifications.deliver import deliver
from submissions.notifications.subscriptions import Wish, add_webhook
from submissions.outbox import Kind
from submissions.states import State
from tests.killed_programs import run_killed
from tests.submissions.notifications.mail_server import mail_server
from tests.submissions.notifications.receiver import receiver
from tests.submissions.notifications.told import confirmed, end, person, run_deliver
from vskill.environments import WorkerEnv, get_environment
from vskill.worker_context import run_with_worker_env

pytestmark = pytest.mark.django_db(transaction=True)

# Around the write of the event itself; around its deliveries and its way out of the outbox; with a delivery leased and
# not sent; sent, and that not written; written, and not committed.
POINTS: Final = (
    *("p0:event:before:1", "p1:event:after:1"),
    *("p2:delivery:before:1", "p3:delivery:after:1", "p4:fanned:before:1", "p5:fanned:after:1"),
    *("p6:lease:before:1", "p7:lease:after:1", "p8:lease:before:2", "p9:lease:after:2", "p10:log:after:1"),
)
SENT_BEFORE: Final = {"p8", "p9", "p10"}


def _run_and_kill(
    tmp_path: Path, settings: Settings, environments: dict[str, Any], points: Sequence[str], **variables: str
) -> None:
    # What sealed the secrets here.
    given = {"VSKILL_SECRET_KEY": settings.SECRET_KEY, **variables}
    run_killed("tests.submissions.notifications.killed_deliver", points, environments, tmp_path / "data", **given)


def test_an_event_is_told_wherever_a_process_dies_and_its_id_stays(tmp_path: Path, settings: Settings) -> None:
    with receiver() as hook:
        policy = {"webhook_private_hosts": [f"127.0.0.1:{hook.port}"]}
        environments = {
            point.split(":")[0]: {"hosts": [f"{number}.test"], "policy": policy} for number, point in enumerate(POINTS)
        }
        settings.VSKILL_ENVIRONMENTS = environments
        environment: dict[str, WorkerEnv] = {name: hook.trusted_by(get_environment(name)) for name in environments}
        for name, env in environment.items():
            add_webhook(env, hook.url(f"/{name}"), Wish(list(Kind)), created_by="root")
            if name not in ("p0", "p1"):
                end(env)
        _run_and_kill(tmp_path, settings, environments, POINTS)
        assert {one.path[1:] for one in hook.taken} == SENT_BEFORE
        # The leases of the dead end by themselves.
        NotificationDelivery.objects.update(leased_until=F("leased_until") - timedelta(hours=1))

        for name, env in environment.items():
            run_deliver(env)
            taken = [one for one in hook.taken if one.path == f"/{name}"]
            if name in ("p0", "p1"):
                # Neither the transition nor the event.
                assert SubmissionEntry.objects.get(namespace=name).state == State.TIER1_SCANNING
                assert not NotificationEvent.objects.filter(namespace=name).exists()
                assert taken == []
                continue
            assert len(taken) == (2 if name in SENT_BEFORE else 1), name
            assert len({one.headers["webhook-id"] for one in taken}) == 1, name
            assert len({one.body for one in taken}) == 1, name
            assert NotificationDelivery.objects.get(namespace=name).state == "delivered", name


def test_a_mail_that_was_taken_before_a_kill_comes_again_with_the_same_id(tmp_path: Path, settings: Settings) -> None:
    with mail_server() as post:
        settings.MAIL_SERVER, settings.MAIL_FROM = post.options, "vskill@example.net"
        environments = {"m0": {"hosts": ["0.test"], "public_url": "https://0.test"}}
        settings.VSKILL_ENVIRONMENTS = environments
        env = get_environment("m0")
        confirmed(env, person("ada", ""), "ada@example.org")
        end(env, submitterAccount="ada")
        url = f"smtp://127.0.0.1:{post.options['port']}"
        mail = {"VSKILL_EMAIL_URL": url, "VSKILL_EMAIL_FROM": "vskill@example.net"}
        _run_and_kill(tmp_path, settings, environments, ["m0:lease:before:2"], **mail)
        assert len(post.taken) == 1
        assert run_deliver(env).mails == 0

        NotificationDelivery.objects.update(leased_until=F("leased_until") - timedelta(hours=1))
        NotificationPreference.objects.update(next_at=None)
        assert run_deliver(env).mails == 1
        assert len({one["Message-ID"] for one in post.taken}) == 1
        assert NotificationDelivery.objects.get().state == "delivered"


async def test_two_runs_at_once_send_each_mail_once(env: WorkerEnv, settings: Settings) -> None:
    def begin() -> None:
        for name in ("ada", "bob", "eve"):
            confirmed(env, person(name), f"{name}@example.org")
            end(env, submitterAccount=name)

    with mail_server() as post:
        settings.MAIL_SERVER, settings.MAIL_FROM = post.options, "vskill@example.net"
        await sync_to_async(begin)()
        await asyncio.gather(*(run_with_worker_env(env, deliver) for _ in range(3)))
        assert sorted(one["To"] for one in post.taken) == ["ada@example.org", "bob@example.org", "eve@example.org"]
