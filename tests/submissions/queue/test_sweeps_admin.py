"""The admin of recovery sweeps: what each read and did, and those that never ended."""

from __future__ import annotations

from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client

from submissions.models import RecoverySweep
from submissions.recovery.sweep import begin_sweep, recover_stuck
from tests.submissions.factories import damage, make_submissions
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
SWEEPS = "/admin/submissions/recoverysweep/"


@pytest.fixture
def operator(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("operator", password="a long password"))
    return client


def listed(operator: Client, outcome: str = "") -> int:
    answer = operator.get(SWEEPS, {"outcome": outcome} if outcome else {})
    assert answer.status_code == 200
    return int(answer.context["cl"].result_count)


def test_sweeps_are_listed_by_their_outcome(operator: Client, env: WorkerEnv) -> None:
    async_to_sync(recover_stuck)(env)
    broken, _good = make_submissions(env, 2, age=timedelta(hours=1))
    damage(env, broken)
    async_to_sync(recover_stuck)(env)
    begin_sweep(env)
    begin_sweep(WorkerEnv(name="another", database=env.database))

    assert listed(operator) == 3
    assert (listed(operator, "moved"), listed(operator, "failed"), listed(operator, "open")) == (1, 1, 1)
    page = operator.get(SWEEPS).content.decode()
    for words in ("nothing to do", "with failures", "not ended"):
        assert words in page


def test_a_sweep_shows_its_report_escaped_and_cannot_be_edited(operator: Client, env: WorkerEnv) -> None:
    make_submissions(env, 1, age=timedelta(hours=1), skillName="<script>")
    async_to_sync(recover_stuck)(env)
    sweep = RecoverySweep.objects.get()
    page = operator.get(f"{SWEEPS}{sweep.pk}/change/").content.decode()
    assert "&lt;script&gt;" in page
    assert "<script>&quot;" not in page
    assert 'name="_save"' not in page
