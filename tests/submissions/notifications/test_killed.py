"""Wherever a process is killed, what happened is told, and a repeat is known by its id."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from django.db.models import F
from pytest_django.fixtures import Settings

from submissions.models import SubmissionEntry
from submissions.notification_models import NotificationDelivery, NotificationEvent
from submissions.notifications.subscriptions import Wish, add_webhook
from submissions.outbox import Kind
from submissions.states import State
from tests.submissions.notifications.receiver import receiver
from tests.submissions.notifications.told import end, run_deliver
from tests.vskill.kv.test_processes import ROOT, database_url
from vskill.environments import WorkerEnv, get_environment

pytestmark = pytest.mark.django_db(transaction=True)

# Around the write of the event itself; around its deliveries and its way out of the outbox; with a delivery leased and
# not sent; sent, and that not written; written, and not committed.
POINTS: Final = (
    *("p0:event:before:1", "p1:event:after:1"),
    *("p2:delivery:before:1", "p3:delivery:after:1", "p4:fanned:before:1", "p5:fanned:after:1"),
    *("p6:lease:before:1", "p7:lease:after:1", "p8:lease:before:2", "p9:lease:after:2", "p10:log:after:1"),
)
SENT_BEFORE: Final = {"p8", "p9", "p10"}


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
        killed = subprocess.run(
            [sys.executable, "-m", "tests.submissions.notifications.killed_deliver", *POINTS],
            cwd=ROOT,
            env={
                **os.environ,
                "DATABASE_URL": database_url(),
                "DJANGO_SETTINGS_MODULE": "vskill.settings",
                "VSKILL_DATA_DIR": str(tmp_path / "data"),
                # What sealed the secrets here.
                "VSKILL_SECRET_KEY": settings.SECRET_KEY,
                "VSKILL_ENVIRONMENTS": json.dumps(environments),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert killed.stdout.split() == [str(-signal.SIGKILL)] * len(POINTS), killed.stderr
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
