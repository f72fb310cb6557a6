"""Who owns a webhook is told by mail that it was disabled: once, with why, and only if mails are wanted."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db.models import F
from django.test import Client
from pytest_django.fixtures import Settings

from submissions.notification_models import NotificationPreference, NotificationSubscription
from submissions.notifications.deliver import deliver
from submissions.notifications.preferences import unsubscribe, unsubscribe_token
from submissions.notifications.subscriptions import Wish, add_webhook, disable, enable, remove
from submissions.outbox import Kind
from tests.submissions.notifications.conftest import ADDRESS
from tests.submissions.notifications.mail_server import MailServer
from tests.submissions.notifications.receiver import receiver, says
from tests.submissions.notifications.told import confirmed, end, person, run_deliver
from tests.submissions.source.connect_proxy import connect_proxy
from tests.submissions.source.https_host import CERTIFICATE
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.clock import database_now
from vskill.worker_context import run_with_worker_env

pytestmark = pytest.mark.django_db(transaction=True)
URL = "https://hooks.example.org/in"


def disabled(env: WorkerEnv, owner: Any) -> NotificationSubscription:
    """Return a webhook that was disabled because its receiver wants no more."""
    one = add_webhook(env, URL, Wish(list(Kind)), created_by=owner.get_username(), owner=owner)[0]
    disable(env, one, "its receiver answered 410: it wants no more")
    return one


def test_its_owner_is_told_once_with_why_and_a_way_out(env: WorkerEnv, ada: Any, post: MailServer) -> None:
    one = disabled(env, ada)
    disable(env, one, "again")
    assert [run_deliver(env).mails for _ in range(3)] == [1, 0, 0]
    [told] = post.taken
    assert told["To"] == ADDRESS
    text = told.get_content()
    assert URL in text
    assert "its receiver answered 410" in text
    assert f"{env.public_url}/account/notifications" in text
    path = told["List-Unsubscribe"].strip(" <>").removeprefix(env.public_url)
    assert Client().get(path).status_code == 200
    # Enabled and disabled again is told again.
    enable(env, one)
    disable(env, one, "nothing could be delivered")
    assert run_deliver(env).mails == 1
    assert len({one["Message-ID"] for one in post.taken}) == len(post.taken)


def test_a_run_that_disables_one_by_itself_has_its_owner_told(
    env: WorkerEnv, ada: Any, post: MailServer, settings: Settings
) -> None:
    with receiver() as hook, connect_proxy() as proxy:
        policy = {"source_ca_file": str(CERTIFICATE), "source_proxy": proxy.url}
        settings.VSKILL_ENVIRONMENTS = {"default": {"hosts": ["*"], "policy": policy}}
        here = get_environment("default")
        hook.answers["/hook"] = says(410)
        url = f"https://git.test.example:{hook.port}/hook"
        add_webhook(here, url, Wish(list(Kind)), created_by="ada", owner=ada)
        NotificationPreference.objects.update(rhythm="daily", next_at=database_now("default") + timedelta(days=1))
        end(here, submitterAccount="ada")
        assert (run_deliver(here).failed, post.taken) == (1, [])
        assert run_deliver(here).mails == 1
    assert url in post.taken[0].get_content()


@pytest.mark.parametrize("state", ["not confirmed", "ended", "inactive", "enabled", "removed"])
def test_who_gets_no_mails_or_has_mended_it_is_told_nothing(env: WorkerEnv, post: MailServer, state: str) -> None:
    ada = person("ada") if state == "not confirmed" else confirmed(env, person("ada"), ADDRESS)
    one = disabled(env, ada)
    if state == "ended":
        unsubscribe(env, unsubscribe_token(env, ada.pk))
    elif state == "inactive":
        ada.is_active = False
        ada.save()
    elif state == "enabled":
        enable(env, one)
    elif state == "removed":
        remove(env, one, actor="ada")
    assert run_deliver(env).mails == 0
    assert post.taken == []
    assert NotificationSubscription.objects.get(pk=one.pk).tell_at is None


def test_one_of_the_operators_has_nobody_to_tell(env: WorkerEnv, ada: Any, post: MailServer) -> None:
    one = add_webhook(env, URL, Wish(list(Kind)), created_by="root")[0]
    disable(env, one, "its receiver answered 410")
    assert run_deliver(env).mails == 0


def test_a_mail_server_that_refuses_is_asked_again_and_not_for_ever(env: WorkerEnv, ada: Any, post: MailServer) -> None:
    one = disabled(env, ada)
    post.refuses = "450 later"
    for _try in range(5):
        assert run_deliver(env).mails == 0
        NotificationSubscription.objects.filter(tell_at__isnull=False).update(
            tell_at=F("tell_at") - timedelta(minutes=3)
        )
    post.refuses = ""
    assert NotificationSubscription.objects.get(pk=one.pk).tell_at is None
    assert run_deliver(env).mails == 0
    enable(env, one)
    disable(env, one, "again")
    post.refuses = "450 later"
    run_deliver(env)
    post.refuses = ""
    assert run_deliver(env).mails == 0
    NotificationSubscription.objects.update(tell_at=F("tell_at") - timedelta(minutes=3))
    assert run_deliver(env).mails == 1


async def test_two_runs_at_once_tell_it_once(env: WorkerEnv, ada: Any, post: MailServer) -> None:
    await sync_to_async(disabled)(env, ada)
    await asyncio.gather(*(run_with_worker_env(env, deliver) for _ in range(3)))
    assert len(post.taken) == 1
