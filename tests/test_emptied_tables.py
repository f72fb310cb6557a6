"""A test that commits finds nothing of the one before, whether that wrote little or much."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.contrib.sessions.models import Session
from django.db import connection
from django.utils import timezone

from tests.emptied_tables import KEPT
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("rows", [1, 300, 0], ids=["little", "much", "nothing"])
def test_a_test_finds_nothing_of_the_one_before(env: WorkerEnv, rows: int) -> None:
    tables = {model._meta.db_table for model in apps.get_models(include_auto_created=True) if model not in KEPT}
    if connection.vendor == "postgresql":
        # Triggers write them, and no model has them.
        tables |= {"marketplace_searchword", "marketplace_searchnameword", "marketplace_searchsample"}
    with connection.cursor() as cursor:
        for table in sorted(tables):
            cursor.execute(f"SELECT count(*) FROM {table}")  # noqa: S608 - names of our own models
            assert cursor.fetchone() == (0,), table
    publish_example(env)
    # 300 of them fill more pages than PostgreSQL keeps for the next test.
    Session.objects.bulk_create(
        Session(session_key=str(number), session_data="x" * 1_000, expire_date=timezone.now()) for number in range(rows)
    )
