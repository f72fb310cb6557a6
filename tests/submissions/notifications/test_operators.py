"""What operators do with webhooks: by the command and in the admin, and what nobody else may."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management.base import CommandError
from django.test import Client
from pytest_django.fixtures import Settings
from standardwebhooks import Webhook

from submissions.notification_models import NotificationDelivery, NotificationSubscription
from submissions.notifications.subscriptions import Wish, add_webhook
from submissions.outbox import Kind
from tests.submissions.commands.run import Ended, help_of, run
from tests.submissions.notifications.receiver import Receiver, receiver, says
from tests.submissions.notifications.told import end, person, run_deliver
from tests.submissions.source.https_host import CERTIFICATE
from vskill.environments import WorkerEnv, get_environment

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def hook(settings: Settings) -> Iterator[Receiver]:
    """Yield a receiver that the environment ``default`` may send to."""
    with receiver() as one:
        policy = {"webhook_private_hosts": [f"127.0.0.1:{one.port}"], "source_ca_file": str(CERTIFICATE)}
        settings.VSKILL_ENVIRONMENTS = {"default": {"hosts": ["*"], "policy": policy}}
        yield one


def webhook(*arguments: str) -> Ended:
    return run("webhook", *arguments)


class TestCommand:
    def test_a_webhook_is_added_tested_listed_and_removed(self, hook: Receiver) -> None:
        added = webhook("add", hook.url(), "--event", "held", "--json").document
        secret = added.pop("secret")
        assert added["events"] == ["held"]
        tested = webhook("test", str(added["id"]), "--json").document
        assert tested["attempts"][0]["status"] == 204
        [taken] = hook.taken
        assert Webhook(secret).verify(taken.body, taken.headers)["type"] == "test"

        listed = webhook("list", "--json")
        assert listed.document["webhooks"] == [{**added, "state": "in order"}]
        assert secret not in listed.out + webhook("list").out + webhook("deliveries").out
        assert webhook("remove", str(added["id"])).out.strip() == f"webhook {added['id']} is removed"
        assert webhook("list", "--json").document == {"webhooks": []}
        with pytest.raises(CommandError, match="no subscription"):
            webhook("test", str(added["id"]))

    def test_a_secret_is_printed_once_for_people_too(self, hook: Receiver) -> None:
        added = webhook("add", hook.url())
        assert added.out.startswith("whsec_")
        assert "shown this once" in added.err

    def test_what_was_sent_is_shown_and_sent_again_under_the_same_id(self, hook: Receiver) -> None:
        webhook("add", hook.url())
        end(get_environment("default"))
        delivered = run("deliver", "--json").document
        assert (delivered["events"], delivered["made"], delivered["delivered"]) == (1, 1, 1)
        [one] = webhook("deliveries", "--state", "delivered", "--json").document["deliveries"]
        assert one["type"] == "submission.held"
        assert webhook("redeliver", str(one["id"]), "--dry-run", "--json").document["dryRun"] is True
        assert run("deliver", "--dry-run", "--json").document["due"] == 0
        webhook("redeliver", str(one["id"]))
        assert "1 delivered" in run("deliver").out
        assert {taken.headers["webhook-id"] for taken in hook.taken} == {one["key"]}
        assert len(hook.taken) == 2

    def test_a_dry_run_checks_and_adds_nothing(self, hook: Receiver) -> None:
        assert webhook("add", hook.url(), "--dry-run", "--json").document["dryRun"] is True
        with pytest.raises(CommandError, match="public internet"):
            webhook("add", "https://10.0.0.1/", "--dry-run")
        assert not NotificationSubscription.objects.exists()

    def test_a_test_that_is_not_taken_ends_with_an_error(self, hook: Receiver) -> None:
        added = webhook("add", hook.url(), "--json").document
        hook.answers["/hook"] = says(500)
        with pytest.raises(CommandError, match="not taken"):
            webhook("test", str(added["id"]))

    def test_the_helps_teach(self) -> None:
        assert "signed" in help_of("webhook")
        assert "27 hours" in help_of("deliver")


class TestAdmin:
    PAGES = ("notificationsubscription", "notificationdelivery")

    @pytest.fixture
    def sent(self, env: WorkerEnv, hook: Receiver) -> tuple[str, NotificationDelivery]:
        here = hook.trusted_by(env)
        _made, secret = add_webhook(here, hook.url(), Wish(list(Kind)), created_by="root")
        hook.answers["/hook"] = says(200, "<script>alert(1)</script>")
        end(here)
        run_deliver(here)
        return secret, NotificationDelivery.objects.get()

    def _signed_in(self, role: str) -> Client:
        client = Client()
        client.force_login(person(f"a-{role or 'nobody'}", role))
        return client

    def test_operators_see_what_was_sent_escaped_and_never_a_secret(self, sent: tuple[str, Any]) -> None:
        client = self._signed_in("operator")
        shown = ""
        for page in self.PAGES:
            listed = client.get(f"/admin/submissions/{page}/").content.decode()
            row = sent[1].pk if page.endswith("delivery") else sent[1].subscription_id
            shown = client.get(f"/admin/submissions/{page}/{row}/change/").content.decode()
            assert sent[0] not in listed + shown
            assert NotificationSubscription.objects.get().secret not in listed + shown
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
        assert "<script>alert(1)" not in shown

    def test_operators_send_again_and_remove(self, sent: tuple[str, Any], hook: Receiver, env: WorkerEnv) -> None:
        client = self._signed_in("operator")
        ids = {"ids": sent[1].pk, "reason": "it was lost"}
        client.post("/admin/submissions/notificationdelivery/operate/redeliver/", ids)
        assert run_deliver(hook.trusted_by(env)).delivered == 1
        ids = {"ids": sent[1].subscription_id, "reason": "moved"}
        client.post("/admin/submissions/notificationsubscription/operate/remove/", ids)
        one = NotificationSubscription.objects.get()
        assert (one.removed_at is not None, one.secret) == (True, "")
        assert "moved" in one.disabled_because

    @pytest.mark.parametrize("role", ["", "viewer", "submitter", "reviewer"])
    def test_who_does_not_operate_changes_nothing(self, sent: tuple[str, Any], role: str) -> None:
        client = self._signed_in(role)
        for address, row in (
            ("notificationdelivery/operate/redeliver/", sent[1].pk),
            ("notificationsubscription/operate/remove/", sent[1].subscription_id),
        ):
            answer = client.post(f"/admin/submissions/{address}", {"ids": row, "reason": "mine"})
            assert answer.status_code in (302, 403)
        sent[1].refresh_from_db()
        assert sent[1].state == "delivered"
        assert NotificationSubscription.objects.get().removed_at is None


def test_what_is_said_names_no_secret(hook: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    secret = webhook("add", hook.url(), "--json").document["secret"]
    hook.answers["/hook"] = says(500)
    end(get_environment("default"))
    run("deliver")
    assert secret not in caplog.text
    assert secret not in json.dumps(list(NotificationDelivery.objects.values("said", "key")))
