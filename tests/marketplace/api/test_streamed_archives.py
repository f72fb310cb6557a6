"""Archives are sent in chunks: a client that never reads costs one chunk and not an archive."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import random
import tracemalloc
from collections.abc import Mapping
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.test import AsyncClient, Client

from marketplace.models import SkillVersion
from tests.marketplace.factories import publish_example, skill_md
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

SIZE: Final = 10_000_000
READERS: Final = 60
# Of memory that a reader which never reads may cost: 30 of them cost less than 10 MB.
MOST_OF_ONE: Final = 300_000
ADDRESS: Final = "/skills/large/download/0.0.1.zip"
FILE: Final = "/api/v1/skills/large/file?path=data.bin"
IMAGE: Final = "/skills/large/images/a.png"
# Eight bytes that begin a PNG, and the size of its image.
PNG: Final = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10"


def publish_large(env: WorkerEnv) -> SkillVersion:
    """Publish a skill of ``SIZE`` bytes that do not compress, and return its version."""
    content = random.Random(1).randbytes(SIZE)
    half = SIZE // 2
    files: dict[str, bytes | str] = {
        "SKILL.md": skill_md("large", "Is large."),
        "data.bin": content[:half],
        "a.png": PNG + content[half : -len(PNG)],
    }
    publish_example(env, name="large", files=files)
    return SkillVersion.objects.get(namespace=env.name)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_streamed_archive_is_whole_and_has_its_length(client: Client, env: WorkerEnv, kind: str) -> None:
    version = publish_large(env)
    answer = client.get(f"/skills/large/download/0.0.1.{kind}")
    content = b"".join(answer.streaming_content)  # type: ignore[attr-defined]  # the stubs know no streamed answer
    expected = (version.zip_sha256, version.zip_size) if kind == "zip" else (version.tar_sha256, version.tar_size)
    assert (hashlib.sha256(content).hexdigest(), len(content)) == expected
    assert answer.headers["Content-Length"] == str(len(content))
    head = client.head(f"/skills/large/download/0.0.1.{kind}")
    assert (head.content, head.headers["Content-Length"]) == (b"", str(len(content)))


async def test_a_streamed_archive_is_whole_for_asynchronous_servers(async_client: AsyncClient, env: WorkerEnv) -> None:
    version = await sync_to_async(publish_large)(env)
    answer: Any = await async_client.get(ADDRESS)
    parts = [part async for part in answer.streaming_content]
    assert hashlib.sha256(b"".join(parts)).hexdigest() == version.zip_sha256


CONTENTS: Final[dict[str, bytes]] = {
    "does not compress": random.Random(2).randbytes(700_000),
    "compresses a thousand times": b"a" * 3_000_000,
    "a chunk": b"\xff" * 65_536,
    "a chunk and a byte": b"\xff" * 65_537,
    "empty": b"",
    "mixed": (b"x" * 300_000 + random.Random(3).randbytes(100_000)) * 3,
}


@pytest.mark.parametrize("content", list(CONTENTS.values()), ids=list(CONTENTS))
async def test_one_file_is_sent_whole_however_it_is_packed(
    client: Client, async_client: AsyncClient, env: WorkerEnv, content: bytes
) -> None:
    files: dict[str, bytes | str] = {"SKILL.md": skill_md("large", "x"), "data.bin": content, "z.txt": b"after"}
    await sync_to_async(publish_example)(env, name="large", files=files)
    for answer in (await async_client.get(FILE), await sync_to_async(client.get)(FILE)):
        found: Any = answer
        if not found.streaming:
            received = found.content
        elif found.is_async:
            received = b"".join([part async for part in found.streaming_content])
        else:
            received = b"".join(await sync_to_async(lambda body: list(body))(found.streaming_content))
            assert found.headers["Content-Length"] == str(len(content))
        assert found.status_code == 200
        assert received == content
        assert found.streaming is (len(content) > 65_536)


@pytest.mark.parametrize("address", [ADDRESS, FILE, IMAGE])
async def test_readers_that_never_read_cost_a_chunk_each(env: WorkerEnv, address: str) -> None:
    await sync_to_async(publish_large)(env)
    handler = ASGIHandler()
    started = asyncio.Semaphore(0)
    clients: list[asyncio.Queue[Mapping[str, Any]]] = []

    async def download() -> None:
        async def receive() -> Mapping[str, Any]:
            return await incoming.get()

        async def send(message: Mapping[str, Any]) -> None:
            if message.get("body"):
                started.release()
                await asyncio.Event().wait()

        incoming: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        clients.append(incoming)
        incoming.put_nowait({"type": "http.request", "body": b"", "more_body": False})
        await handler(_scope(address), receive, send)

    # What the first answer of a process loads is not a cost of its reader.
    first = asyncio.create_task(download())
    await started.acquire()
    clients.pop().put_nowait({"type": "http.disconnect"})
    await first
    del first
    gc.collect()
    tracemalloc.start()
    try:
        downloads = [asyncio.create_task(download()) for _ in range(READERS)]
        for _ in downloads:
            await started.acquire()
        held, _peak = tracemalloc.get_traced_memory()
        for client in clients:
            client.put_nowait({"type": "http.disconnect"})
        await asyncio.gather(*downloads)
        clients.clear()
        del downloads, client
        # The body of a response that was not sent to its end is closed by a task of its own.
        for _ in range(10):
            gc.collect()
            await asyncio.sleep(0)
        left, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < READERS * MOST_OF_ONE
    assert left < READERS * MOST_OF_ONE / 10


def _scope(address: str) -> dict[str, Any]:
    path, _, query = address.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"testserver")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
