"""The steps of the end-to-end tests: what a visitor, a client and an operator do."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.test import AsyncClient

from submissions.models import QueueMessage, SubmissionEntry, SubmissionTransition
from submissions.pipeline.handlers import make_handlers
from submissions.queue.consumer import Consumer, ConsumerOptions
from vskill.environments import WorkerEnv

WHOLE_WAY = ["RECEIVED", "TIER1_SCANNING", "AUTO_APPROVED", "PUBLISHED"]


@dataclass
class Visitor:
    """A browser that keeps cookies and sends only what is in the forms."""

    client: AsyncClient = field(default_factory=lambda: AsyncClient(enforce_csrf_checks=True))
    status: int = 0
    text: str = ""
    location: str = ""

    async def open(self, address: str) -> str:
        """Open a page and return its text."""
        return self._seen(await self.client.get(address))

    async def ask_for(self, repository_url: str) -> list[str]:
        """Enter an address on the submit page and return the paths of the skills that can be selected."""
        await self.open("/submit")
        fields = {"csrfmiddlewaretoken": self.field("csrfmiddlewaretoken"), "repository_url": repository_url}
        self._seen(await self.client.post("/submit", fields))
        boxes = re.findall(r"<input type=\"checkbox\" name=\"paths\" value=\"([^\"]*)\"([^>]*)>", self.text)
        return [html.unescape(path) for path, rest in boxes if "disabled" not in rest]

    async def pick(self, paths: Sequence[str]) -> None:
        """Submit some of the skills that ``ask_for`` listed."""
        names = ("csrfmiddlewaretoken", "listing", "repository_url")
        fields: dict[str, Any] = {name: self.field(name) for name in names}
        self._seen(await self.client.post("/submit", {**fields, "paths": list(paths)}))

    def field(self, name: str) -> str:
        """Return the value of the last field on the page with this name."""
        values = re.findall(rf"name=\"{name}\"[^>]*? value=\"([^\"]*)\"", self.text)
        assert values, f"the page has no field {name!r}: {self.words()[:2000]}"
        return html.unescape(values[-1])

    def words(self) -> str:
        """Return the visible text of the page."""
        body = re.sub(r"(?s)<(script|style)\b.*?</\1>", " ", self.text)
        return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))

    def _seen(self, response: Any) -> str:
        self.status, self.location = response.status_code, response.headers.get("Location", "")
        self.text = response.content.decode()
        return self.text


async def submit_by_api(**fields: str) -> tuple[int, dict[str, Any]]:
    """POST a submission to the API and return status and body."""
    response = await AsyncClient().post("/api/v1/submissions", fields, content_type="application/json")
    return response.status_code, response.json()


async def get_json(address: str) -> dict[str, Any]:
    """Return the JSON object of a successful answer."""
    response = await AsyncClient().get(address)
    assert response.status_code == 200, response.content[:500]
    body = response.json()
    assert isinstance(body, dict)
    return body


async def get_bytes(address: str) -> bytes:
    """Return the bytes of a successful download from this server."""
    response = await AsyncClient().get(re.sub(r"^https?://[^/]+", "", address))
    assert response.status_code == 200, response.content[:500]
    return bytes(response.content)


async def consume(*environments: WorkerEnv) -> str:
    """Run the real consumer until the queue is empty, and return how the messages were settled."""
    options = ConsumerOptions(max_batch_size=3, max_concurrency=10, worker="test", drain=True)
    consumer = Consumer(list(environments), make_handlers(), options)
    await consumer.run(asyncio.Event())
    return str(consumer.report)


@dataclass(frozen=True)
class Stored:
    """The content of the tables: submissions as (path, state), oldest first, and the number of messages."""

    submissions: list[tuple[str, str]]
    messages: int

    @property
    def ends(self) -> dict[str, str]:
        """Return the state of the newest submission of each path."""
        return dict(self.submissions)


async def stored(env: WorkerEnv) -> Stored:
    """Return the content of the tables for one environment."""
    rows = SubmissionEntry.objects.using(env.database).filter(namespace=env.name).order_by("id")
    messages = QueueMessage.objects.using(env.database).filter(environment=env.name)
    return Stored(
        await sync_to_async(lambda: list(rows.values_list("skill_path", "state")))(),
        await sync_to_async(messages.count)(),
    )


async def steps(env: WorkerEnv, submission_id: str) -> list[str]:
    """Return the states of a submission in order, from its history rows."""
    rows = SubmissionTransition.objects.using(env.database).filter(namespace=env.name, submission_id=submission_id)
    ordered = rows.order_by("sequence").values_list("from_state", "to_state")
    walked = await sync_to_async(lambda: list(ordered))()
    assert [before for before, _ in walked] == ["", *(after for _, after in walked[:-1])], walked
    return [after for _, after in walked]


def zip_address(page: str) -> str:
    """Return the address of the archive that a skill's page links to."""
    links = re.findall(r"<a href=\"([^\"]+)\"[^>]*>zip</a>", page)
    assert len(links) == 1, links
    return html.unescape(links[0])


def address_of(repository: Path) -> str:
    """Return the address under which a bare repository of a test is submitted."""
    return repository.as_uri()
