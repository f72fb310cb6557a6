"""A database that is away is said to be away: with 503 and a time to come back, never with an empty page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import OperationalError
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import AsyncClient, Client, override_settings
from django.urls import get_resolver, path
from pytest_django import DjangoDbBlocker

from tests.vskill.absent_database import ALIAS, absent_database, dead_server, unreadable_file
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.views import server_error
from vskill.worker_context import require_worker_env, run_with_worker_env

pytestmark = pytest.mark.database


def count(request: HttpRequest) -> HttpResponse:
    return HttpResponse(KVEntry.objects.count())


async def keys(request: HttpRequest) -> JsonResponse:
    page = await KVNamespace(KVEntry, require_worker_env()).list()
    return JsonResponse({"keys": len(page.keys)})


def remember(request: HttpRequest) -> HttpResponse:
    # The view is content; it is the session's middleware that finds nowhere to save it.
    request.session["seen"] = True
    return HttpResponse("remembered")


async def aremember(request: HttpRequest) -> HttpResponse:
    return remember(request)


def failing_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    def answer(request: HttpRequest) -> HttpResponse:
        raise ValueError("a mistake of ours")

    return answer


urlpatterns = [
    path("count", count),
    path("api/keys", keys),
    path("remember", remember),
    path("aremember", aremember),
    path("api/remember", remember),
    path("api/aremember", aremember),
]
# As the root URL space has it.
handler500 = server_error


class AwayRouter:
    """Look for the tables of Django itself, such as the sessions, in the database that is away as well."""

    def db_for_read(self, model: type[Model], **_hints: Any) -> str:
        return ALIAS

    db_for_write = db_for_read


@pytest.fixture(params=["unreadable file", "dead server"])
def away(request: pytest.FixtureRequest, tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[WorkerEnv]:
    """Return the environment of the test server's host, in a database that is away."""
    databases: dict[str, Callable[[], dict[str, Any]]] = {
        "unreadable file": lambda: unreadable_file(tmp_path),
        "dead server": dead_server,
    }
    # Not the mark django_db, which forbids every database but the one that it empties.
    with (
        django_db_blocker.unblock(),
        absent_database(databases[request.param]()) as alias,
        override_settings(
            VSKILL_ENVIRONMENTS={"default": {"hosts": ["testserver"], "database": alias}},
            DATABASE_ROUTERS=[f"{__name__}.AwayRouter"],
        ),
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


async def answers(client: Client, async_client: AsyncClient, address: str) -> tuple[Any, Any]:
    """Return what visitors get from an address, below WSGI and below ASGI."""
    client.raise_request_exception = async_client.raise_request_exception = False
    return await sync_to_async(client.get)(address), await async_client.get(address)


@pytest.mark.urls(__name__)
@pytest.mark.parametrize("address", ["/remember", "/aremember"])
async def test_a_session_that_cannot_be_saved_is_a_database_that_is_away(
    away: WorkerEnv, client: Client, async_client: AsyncClient, address: str
) -> None:
    for response in await answers(client, async_client, address):
        assert response.status_code == 503
        assert response["Retry-After"] == "10"
        assert response["Content-Type"].startswith("text/html")
        assert "does not answer" in response.content.decode()
        assert "default-src 'none'" in response["Content-Security-Policy"]


@pytest.mark.urls(__name__)
@pytest.mark.parametrize("address", ["/api/remember", "/api/aremember"])
async def test_the_api_says_of_such_a_session_the_same_in_its_own_words(
    away: WorkerEnv, client: Client, async_client: AsyncClient, address: str
) -> None:
    for response in await answers(client, async_client, address):
        assert response.status_code == 503
        assert response["Retry-After"] == "10"
        assert response.json()["error"] == "database_unavailable"


async def test_a_page_of_the_admin_says_so_to_whoever_is_logged_in(
    away: WorkerEnv, client: Client, async_client: AsyncClient
) -> None:
    for asked in (client, async_client):
        asked.cookies["sessionid"] = "0123456789abcdef0123456789abcdef"
    for response in await answers(client, async_client, "/admin/"):
        assert response.status_code == 503
        # Whoever was logged in still is, once the database is back.
        assert "sessionid" not in response.cookies


def test_the_root_url_space_answers_as_the_one_of_these_tests_does() -> None:
    assert get_resolver(settings.ROOT_URLCONF).resolve_error_handler(500) is server_error


@pytest.mark.parametrize("middleware", ["outermost", "innermost"])
def test_a_mistake_of_ours_in_a_middleware_stays_a_mistake_of_ours(client: Client, middleware: str) -> None:
    client.raise_request_exception = False
    failing = [f"{__name__}.failing_middleware"]
    chain = [*failing, *settings.MIDDLEWARE] if middleware == "outermost" else [*settings.MIDDLEWARE, *failing]
    with override_settings(MIDDLEWARE=chain):
        response = client.get("/")
    assert response.status_code == 500
    assert "Something broke on this server" in response.content.decode()


def test_a_query_in_its_environment_asks_that_database_and_no_other(away: WorkerEnv) -> None:
    with pytest.raises(OperationalError):
        run_with_worker_env(away, KVEntry.objects.count)
