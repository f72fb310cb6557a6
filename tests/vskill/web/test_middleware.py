"""A request is answered in the environment of its host, and every answer carries its headers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import AsyncClient, Client, RequestFactory, override_settings
from django.urls import path

from vskill.web.middleware import WorkerEnvMiddleware
from vskill.worker_context import get_worker_env, require_worker_env


def name(request: HttpRequest) -> HttpResponse:
    return HttpResponse(require_worker_env().name)


def named(request: HttpRequest, rest: str) -> HttpResponse:
    return HttpResponse(rest)


def broken(request: HttpRequest) -> HttpResponse:
    raise ImproperlyConfigured("a mistake of ours")


def stream(request: HttpRequest) -> StreamingHttpResponse:
    def parts() -> Iterator[str]:
        for _ in range(2):
            yield f"{require_worker_env().name};"

    return StreamingHttpResponse(parts())


async def astream(request: HttpRequest) -> StreamingHttpResponse:
    async def parts() -> AsyncIterator[str]:
        for _ in range(2):
            yield f"{require_worker_env().name};"

    return StreamingHttpResponse(parts())


ended_in: list[str | None] = []


def endless(request: HttpRequest) -> StreamingHttpResponse:
    def parts() -> Iterator[str]:
        try:
            while True:
                yield "part;"
        finally:
            ended_in.append(require_worker_env().name)

    return StreamingHttpResponse(parts())


async def aendless(request: HttpRequest) -> StreamingHttpResponse:
    async def parts() -> AsyncIterator[str]:
        try:
            while True:
                yield "part;"
        finally:
            await asyncio.sleep(0)
            ended_in.append(require_worker_env().name)

    return StreamingHttpResponse(parts())


urlpatterns = [
    path("name", name),
    path("name/<path:rest>", named),
    path("broken", broken),
    path("stream", stream),
    path("astream", astream),
    path("endless", endless),
    path("aendless", aendless),
]
TWO = {"public": {"hosts": ["a.example.com"]}, "internal": {"hosts": ["b.example.com"]}}

pytestmark = [pytest.mark.urls(__name__), pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize(("host", "environment"), [("a.example.com", "public"), ("b.example.com:8000", "internal")])
def test_the_host_chooses_the_environment(client: Client, host: str, environment: str) -> None:
    with override_settings(VSKILL_ENVIRONMENTS=TWO, ALLOWED_HOSTS=["*"]):
        assert client.get("/name", headers={"host": host}).content.decode() == environment
    assert get_worker_env() is None


@pytest.mark.parametrize("host", ["evil.example.com", "a.example.com.evil.example.com", "a b", ""])
def test_a_host_that_nobody_serves_is_misdirected(client: Client, host: str) -> None:
    response = client.get("/name", headers={"host": host})
    assert response.status_code == 421
    assert b"VSKILL_HOSTS" in response.content
    assert host.encode() not in response.content or not host


async def test_a_host_that_nobody_serves_is_misdirected_below_asgi_too(async_client: AsyncClient) -> None:
    assert (await async_client.get("/name", headers={"host": "evil.example.com"})).status_code == 421


@pytest.mark.parametrize("way", ["/name/%00", "/name/a%00b/c"])
async def test_a_name_that_no_database_can_hold_is_nowhere(client: Client, async_client: AsyncClient, way: str) -> None:
    assert (await async_client.get("/name/a")).status_code == 200
    assert (await async_client.get(way)).status_code == 404
    assert (await sync_to_async(client.get)(way)).status_code == 404


def test_a_streamed_body_is_made_in_the_environment_of_its_request(client: Client) -> None:
    response = client.get("/stream")
    assert response.getvalue() == b"default;default;"


async def test_an_asynchronous_body_is_made_in_the_environment_of_its_request(async_client: AsyncClient) -> None:
    parts: AsyncIterator[bytes] = (await async_client.get("/astream")).streaming_content  # type: ignore[attr-defined]  # the stubs know no streamed answer
    assert [part async for part in parts] == [b"default;", b"default;"]
    assert get_worker_env() is None


def test_a_streamed_body_that_nobody_reads_to_its_end_ends_in_the_environment_of_its_request(client: Client) -> None:
    ended_in.clear()
    response = client.get("/endless")
    assert next(iter(response)) == b"part;"
    response.close()
    assert ended_in == ["default"]
    assert get_worker_env() is None


async def test_an_asynchronous_body_that_nobody_reads_to_its_end_ends_in_the_environment_of_its_request() -> None:
    ended_in.clear()
    response: Any = await WorkerEnvMiddleware(aendless)(RequestFactory().get("/aendless"))  # type: ignore[misc]  # async
    # Below Django's own generator, which would leave it to the event loop at some moment.
    body = response._iterator
    assert await anext(body) == b"part;"
    await body.aclose()
    assert ended_in == ["default"]


def test_a_mistake_of_ours_is_not_called_a_database_that_is_away(client: Client) -> None:
    client.raise_request_exception = False
    assert client.get("/broken").status_code == 500


@pytest.mark.parametrize("way", ["/name", "/missing", "/stream"])
def test_every_answer_carries_the_content_security_policy(client: Client, way: str) -> None:
    response = client.get(way)
    policy = response["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


async def test_an_asynchronous_answer_carries_it_as_well(async_client: AsyncClient) -> None:
    assert "default-src 'none'" in (await async_client.get("/name"))["Content-Security-Policy"]
