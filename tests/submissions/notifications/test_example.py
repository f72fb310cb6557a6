"""The receiver that the document shows takes what the registry sends, and each delivery once."""

from __future__ import annotations

from typing import Any

import pytest

from submissions.notification_models import NotificationDelivery
from submissions.notifications.claims import redeliver
from submissions.notifications.subscriptions import Wish, add_webhook
from submissions.outbox import Kind
from tests.docs.examples import blocks
from tests.end_to_end.processes import ROOT
from tests.submissions.notifications.receiver import receiver
from tests.submissions.notifications.told import end, run_deliver
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_example_takes_what_is_signed_and_each_delivery_once(
    env: WorkerEnv, capsys: pytest.CaptureFixture[str]
) -> None:
    [example] = [one for one in blocks(ROOT / "docs" / "notifications.md") if one.language == "python"]
    program: dict[str, Any] = {}
    exec(compile(example.text, example.place, "exec"), program)  # noqa: S102 - our own document
    with receiver() as hook:
        here = hook.trusted_by(env)
        _made, secret = add_webhook(here, hook.url(), Wish(list(Kind)), created_by="root")
        held = end(here)
        run_deliver(here)
        redeliver(here, NotificationDelivery.objects.get().pk)
        run_deliver(here)
    first, again = hook.taken
    shown = program["Receiver"](secret)
    assert shown.take(first.headers, first.body) == 204
    assert shown.take(again.headers, again.body) == 204
    assert capsys.readouterr().out == f"submission.held {here.public_url}/submissions/{held.id}\n"
    assert shown.take(first.headers, first.body + b" ") == 401
    old = {**first.headers, "webhook-timestamp": "1700000000"}
    assert shown.take(old, first.body) == 401
    other = program["Receiver"]("whsec_AAAA")
    assert other.take(first.headers, first.body) == 401
