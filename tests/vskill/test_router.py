"""An entry is read and written in the database of the current environment."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.db import router

from submissions.models import SubmissionEntry
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.worker_context import run_with_worker_env

ELSEWHERE = WorkerEnv(name="elsewhere", database="other")


@pytest.mark.parametrize("model", [KVEntry, SubmissionEntry])
def test_an_entry_goes_to_the_database_of_its_environment(model: type[KVEntry]) -> None:
    assert run_with_worker_env(ELSEWHERE, router.db_for_read, model) == "other"
    assert run_with_worker_env(ELSEWHERE, router.db_for_write, model) == "other"


def test_users_and_sessions_stay_where_django_keeps_them() -> None:
    assert run_with_worker_env(ELSEWHERE, router.db_for_read, get_user_model()) == "default"


def test_outside_a_scope_django_chooses() -> None:
    assert router.db_for_read(KVEntry) == "default"
