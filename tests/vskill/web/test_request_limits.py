"""No body of a request is taken beyond what any form of ours can need."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from django.core.asgi import get_asgi_application

from vskill.web.request_limits import MAX_UPLOAD_BYTES, MAX_WEBHOOK_BYTES, LimitBodies, Message, Receive, Scope, Send


class Client:
    """Sends a body part by part, and counts how many parts were taken."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self.parts = list(parts)
        self.taken = 0
        self.answer: list[Message] = []

    async def receive(self) -> Message:
        self.taken += 1
        return {
            "type": "http.request",
            "body": self.parts[self.taken - 1],
            "more_body": self.taken < len(self.parts),
        }

    async def send(self, message: Message) -> None:
        self.answer.append(message)

    @property
    def status(self) -> int:
        return int(self.answer[0]["status"])


def scope(*headers: tuple[bytes, bytes], kind: str = "http") -> dict[str, Any]:
    return {
        "type": kind,
        "asgi": {"version": "3.0"},
        "method": "POST",
        "path": "/nothing-here",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1"), *headers],
    }


async def reads_all(_scope: Scope, receive: Receive, send: Send) -> None:
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message["body"])
        if not message["more_body"]:
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


async def test_a_body_within_the_limit_arrives_whole() -> None:
    client = Client([b"x" * 60, b"x" * 40])

    await LimitBodies(reads_all, limit=100)(scope(), client.receive, client.send)

    assert (client.status, client.answer[1]["body"]) == (200, b"100")


@pytest.mark.parametrize("length", [b"101", b"9" * 30, b"-1", b"many"])
async def test_a_body_announced_too_long_is_refused_unread(length: bytes) -> None:
    client = Client([b"x"])

    await LimitBodies(reads_all, limit=100)(scope((b"content-length", length)), client.receive, client.send)

    assert (client.status, client.taken) == (413, 0)


async def test_an_endless_body_is_taken_no_further_than_the_limit() -> None:
    client = Client([b"x" * 60] * 1000)

    await LimitBodies(reads_all, limit=100)(scope(), client.receive, client.send)

    assert (client.status, client.taken) == (413, 2)


@pytest.mark.django_db(transaction=True)
async def test_the_framework_lets_go_of_a_body_over_the_limit() -> None:
    client = Client([b"x" * 60] * 1000)

    await LimitBodies(get_asgi_application(), limit=100)(scope(), client.receive, client.send)

    assert client.status == 413
    assert client.taken < 10


async def test_a_body_that_never_arrives_is_answered_at_the_time_limit() -> None:
    client = Client([])

    async def silence() -> Message:
        never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        return await never

    await LimitBodies(reads_all, seconds=0.01)(scope(), silence, client.send)

    assert client.status == 408


async def test_a_client_may_wait_for_its_answer_longer_than_its_body_may_take() -> None:
    client = Client([b"all of it"])
    left = asyncio.get_running_loop().create_future()

    async def receive() -> Message:
        return await client.receive() if client.taken == 0 else await left

    async def slow(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        leaving = asyncio.ensure_future(receive())
        # The time limit of the body is over by now, because it is none at all.
        done, _ = await asyncio.wait({leaving}, timeout=0.01)
        assert not done
        left.set_result({"type": "http.disconnect"})
        assert (await leaving)["type"] == "http.disconnect"
        await send({"type": "http.response.start", "status": 200, "headers": []})

    await LimitBodies(slow, seconds=0.005)(scope(), receive, client.send)

    assert client.status == 200


async def test_what_is_no_request_is_passed_on() -> None:
    seen: list[str] = []

    async def note(given: Scope, _receive: Receive, _send: Send) -> None:
        seen.append(given["type"])

    client = Client([])
    await LimitBodies(note)(scope(kind="lifespan"), client.receive, client.send)

    assert seen == ["lifespan"]


@pytest.mark.parametrize("path", ["/api/v1/submissions", "/api/v1/listings", "/api/v1/jobs", "/api/v1/jobs/x/stop"])
async def test_a_refusal_of_the_api_of_submissions_is_json(path: str) -> None:
    client = Client([])
    large = {**scope((b"content-length", b"101")), "path": path}

    await LimitBodies(reads_all, limit=100)(large, client.receive, client.send)

    assert (client.status, json.loads(client.answer[1]["body"])["error"]) == (413, "too_large")


async def test_a_websocket_is_refused_before_it_opens() -> None:
    client = Client([b""])
    await LimitBodies(get_asgi_application())(scope(kind="websocket"), client.receive, client.send)
    assert client.answer == [{"type": "websocket.close"}]


@pytest.mark.parametrize(
    ("path", "method", "authorization", "status"),
    [
        ("/api/v1/skills", "POST", b"Bearer vsk_x", 200),
        ("/api/v1/skills/-/upload/ticket", "POST", b"bearer vsk_x", 200),
        ("/api/v1/skills", "POST", b"", 413),
        ("/api/v1/skills", "POST", b"Basic vsk_x", 413),
        ("/api/v1/skills", "PUT", b"Bearer vsk_x", 413),
        ("/api/v1/skills/-/upload-url", "POST", b"Bearer vsk_x", 413),
        ("/api/v1/submissions", "POST", b"Bearer vsk_x", 413),
    ],
)
async def test_only_an_upload_that_bears_a_token_may_be_longer(
    path: str, method: str, authorization: bytes, status: int
) -> None:
    client = Client([b"x" * 200])
    asked = {**scope((b"authorization", authorization)), "path": path, "method": method}

    await LimitBodies(reads_all, limit=100)(asked, client.receive, client.send)

    assert client.status == status


@pytest.mark.parametrize(
    ("path", "method", "header", "status"),
    [
        ("/api/v1/webhooks/github", "POST", b"x-hub-signature-256", 200),
        ("/api/v1/webhooks/gitea", "POST", b"x-forgejo-signature", 200),
        ("/api/v1/webhooks/gitlab", "POST", b"x-gitlab-token", 200),
        ("/api/v1/webhooks/github", "POST", b"x-github-event", 413),
        ("/api/v1/webhooks/github", "PUT", b"x-hub-signature-256", 413),
        ("/api/v1/webhooks/github/more", "POST", b"x-hub-signature-256", 413),
        ("/api/v1/submissions", "POST", b"x-hub-signature-256", 413),
    ],
)
async def test_only_a_webhook_that_bears_a_signature_may_be_longer(
    path: str, method: str, header: bytes, status: int
) -> None:
    client = Client([b"x" * 200])
    asked = {**scope((header, b"something")), "path": path, "method": method}

    await LimitBodies(reads_all, limit=100)(asked, client.receive, client.send)

    assert client.status == status


async def test_a_webhook_has_a_limit_too() -> None:
    length = str(MAX_WEBHOOK_BYTES + 1).encode()
    signed = scope((b"x-hub-signature-256", b"sha256=0"), (b"content-length", length))
    client = Client([b"x"])

    await LimitBodies(reads_all, limit=100)({**signed, "path": "/api/v1/webhooks/github"}, client.receive, client.send)

    assert (client.status, client.taken) == (413, 0)
    assert json.loads(client.answer[1]["body"])["error"] == "too_large"


async def test_an_upload_has_a_limit_too() -> None:
    length = str(MAX_UPLOAD_BYTES + 1).encode()
    asked = {**scope((b"authorization", b"Bearer vsk_x"), (b"content-length", length)), "path": "/api/v1/skills"}
    client = Client([b"x"])

    await LimitBodies(reads_all, limit=100)(asked, client.receive, client.send)

    assert (client.status, client.taken) == (413, 0)
