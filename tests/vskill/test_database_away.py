"""A database that is away is said to be away: with 503 and a time to come back, never with an empty page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import AsyncClient, Client, override_settings
from django.urls import path
from pytest_django import DjangoDbBlocker

from tests.vskill.absent_database import absent_database, dead_server, unreadable_file
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.worker_context import require_worker_env, run_with_worker_env


def count(request: HttpRequest) -> HttpResponse:
    return HttpResponse(KVEntry.objects.count())


async def keys(request: HttpRequest) -> JsonResponse:
    page = await KVNamespace(KVEntry, require_worker_env()).list()
    return JsonResponse({"keys": len(page.keys)})


urlpatterns = [path("count", count), path("api/keys", keys)]


@pytest.fixture(params=["unreadable file", "dead server"])
def away(request: pytest.FixtureRequest, tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[WorkerEnv]:
    """Return the environment of the test server's host, in a database that is away."""
    settings: dict[str, Callable[[], dict[str, Any]]] = {
        "unreadable file": lambda: unreadable_file(tmp_path),
        "dead server": dead_server,
    }
    # Not the mark django_db, which forbids every database but the one that it empties.
    with (
        django_db_blocker.unblock(),
        absent_database(settings[request.param]()) as alias,
        override_settings(VSKILL_ENVIRONMENTS={"default": {"hosts": ["testserver"], "database": alias}}),
    ):
        yield get_environment("default")


@pytest.mark.urls(__name__)
def test_a_page_says_that_the_database_is_away_and_when_to_come_back(away: WorkerEnv, client: Client) -> None:
    response = client.get("/count")
    assert response.status_code == 503
    assert response["Retry-After"] == "10"
    assert response["Content-Type"].startswith("text/html")
    assert "does not answer" in response.content.decode()


@pytest.mark.urls(__name__)
async def test_the_api_says_so_in_its_own_words(away: WorkerEnv, async_client: AsyncClient) -> None:
    response = await async_client.get("/api/keys")
    assert response.status_code == 503
    assert response["Retry-After"] == "10"
    assert response.json()["error"] == "database_unavailable"


@pytest.mark.parametrize("address", ["/submissions/sub_1", "/api/v1/submissions/sub_1", "/queue", "/skills/one", "/"])
def test_no_page_takes_a_database_that_is_away_for_something_else(
    away: WorkerEnv, client: Client, address: str
) -> None:
    assert client.get(address).status_code == 503


def test_a_query_in_its_environment_asks_that_database_and_no_other(away: WorkerEnv) -> None:
    with pytest.raises(OperationalError):
        run_with_worker_env(away, KVEntry.objects.count)
