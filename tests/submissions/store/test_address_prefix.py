"""The admin finds addresses by their beginning with an index, on both databases."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.models import Model

from marketplace.models import SkillEntry
from submissions.models import SubmissionEntry
from vskill.environments import WorkerEnv
from vskill.read_only_admin import prefix_range
from vskill.worker_context import run_with_worker_env

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("model", [SubmissionEntry, SkillEntry], ids=["submissions", "skills"])
def test_the_beginning_of_an_address_is_a_range_of_an_index(env: WorkerEnv, model: type[Model]) -> None:
    condition = run_with_worker_env(env, prefix_range, "repo_url", "https://git.example.org/ac")
    rows = model._base_manager.using(env.database).filter(condition, namespace=env.name)
    model._base_manager.using(env.database).bulk_create(
        model(namespace=env.name, key=f"x:{number}", value="null", repo_url=f"https://git.example.org/{number}/skills")
        for number in range(3000)
    )
    with connection.cursor() as cursor:
        # PostgreSQL reads a table of a few rows whole, whatever indexes it has.
        cursor.execute("ANALYZE")
    plan = rows.explain()
    wanted = "repo_url ~>=~" if connection.vendor == "postgresql" else "repo_url>?"
    assert wanted in plan.replace('"', "").replace("(", "").replace(")::text", ""), plan
