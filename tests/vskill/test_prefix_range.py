"""The search of the admins by the beginning of a text."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Collate

from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.read_only_admin import prefix_range
from vskill.worker_context import run_with_worker_env

pytestmark = pytest.mark.django_db

NAMES = ("sub_9", "sub_9a", "sub_a", "zoo", "Zoo", "50%", "500", "z{", "\U0010ffff!")


def _found(env: WorkerEnv, rows: QuerySet[KVEntry], column: str, text: str) -> set[str]:
    return {entry.metadata for entry in rows.filter(run_with_worker_env(env, prefix_range, column, text))}


@pytest.fixture
def rows(env: WorkerEnv) -> QuerySet[KVEntry]:
    KVEntry.objects.bulk_create(KVEntry(namespace=env.name, key=f"k:{n}", value="1", metadata=n) for n in NAMES)
    return KVEntry.objects.all()


@pytest.mark.parametrize("text", ["sub_9", "sub_", "z", "zoo", "50%", "\U0010ffff", "nothing"])
def test_what_starts_with_the_text_is_found_and_nothing_else(
    env: WorkerEnv, rows: QuerySet[KVEntry], text: str
) -> None:
    assert _found(env, rows, "metadata", text) == {name for name in NAMES if name.startswith(text)}


@pytest.mark.postgres
@pytest.mark.skipif(connection.vendor != "postgresql", reason="collations of PostgreSQL")
@pytest.mark.parametrize("text", ["sub_9", "sub_", "z", "zoo"])
def test_the_language_of_the_server_does_not_change_what_is_found(
    env: WorkerEnv, rows: QuerySet[KVEntry], text: str
) -> None:
    told = rows.annotate(told=Collate("metadata", "en-x-icu"))
    assert _found(env, told, "told", text) == {name for name in NAMES if name.startswith(text)}
