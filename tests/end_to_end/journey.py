"""What a visitor, a client and an operator do: the steps that the end-to-end tests are made of."""

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
    """Somebody with a browser that keeps cookies and sends what is in the forms, and nothing else."""

    client: AsyncClient = field(default_factory=lambda: AsyncClient(enforce_csrf_checks=True))
    status: int = 0
    text: str = ""
    location: str = ""

    async def open(self, address: str) -> str:
        """Open a page and return its text."""
        return self._seen(await self.client.get(address))

    async def ask_for(self, repository_url: str) -> list[str]:
        """Enter an address on the submit page and return the paths of the skills that can be picked."""
        await self.open("/submit")
        fields = {"csrfmiddlewaretoken": self.field("csrfmiddlewaretoken"), "repository_url": repository_url}
        self._seen(await self.client.post("/submit", fields))
        boxes = re.findall(r"<input type=\"checkbox\" name=\"paths\" value=\"([^\"]*)\"([^>]*)>", self.text)
        return [html.unescape(path) for path, rest in boxes if "disabled" not in rest]

    async def pick(self, paths: Sequence[str]) -> None:
        """Submit skills of the list that ``ask_for`` showed."""
        names = ("csrfmiddlewaretoken", "token", "repository_url")
        fields: dict[str, Any] = {name: self.field(name) for name in names}
        self._seen(await self.client.post("/submit", {**fields, "paths": list(paths)}))

    def field(self, name: str) -> str:
        """Return the value of the last field of a name on the page."""
        values = re.findall(rf"name=\"{name}\"[^>]*? value=\"([^\"]*)\"", self.text)
        assert values, f"the page has no field {name!r}: {self.words()[:2000]}"
        return html.unescape(values[-1])

    def words(self) -> str:
        """Return the text of the page as a person reads it."""
        body = re.sub(r"(?s)<(script|style)\b.*?</\1>", " ", self.text)
        return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))

    def _seen(self, response: Any) -> str:
        self.status, self.location = response.status_code, response.headers.get("Location", "")
        self.text = response.content.decode()
        return self.text


async def submit_by_api(**fields: str) -> tuple[int, dict[str, Any]]:
    """POST a submission as a client of the API does and return status and body."""
    response = await AsyncClient().post("/api/v1/submissions", fields, content_type="application/json")
    return response.status_code, response.json()


async def get_json(address: str) -> dict[str, Any]:
    """Return what the API answers with success."""
    response = await AsyncClient().get(address)
    assert response.status_code == 200, response.content[:500]
    body = response.json()
    assert isinstance(body, dict)
    return body


async def get_bytes(address: str) -> bytes:
    """Return what is downloaded from an address of this server."""
    response = await AsyncClient().get(re.sub(r"^https?://[^/]+", "", address))
    assert response.status_code == 200, response.content[:500]
    return bytes(response.content)


async def consume(*environments: WorkerEnv) -> str:
    """Let the real consumer work until nothing is left, and return how the messages ended."""
    options = ConsumerOptions(max_batch_size=3, max_concurrency=10, worker="test", drain=True)
    consumer = Consumer(list(environments), make_handlers(), options)
    await consumer.run(asyncio.Event())
    return str(consumer.report)


@dataclass(frozen=True)
class Stored:
    """What the tables hold: submissions as (path, state), oldest first, and how many messages there are."""

    submissions: list[tuple[str, str]]
    messages: int

    @property
    def ends(self) -> dict[str, str]:
        """Return the state of the newest submission of each path."""
        return dict(self.submissions)


async def stored(env: WorkerEnv) -> Stored:
    """Return what the tables hold of one environment."""
    rows = SubmissionEntry.objects.using(env.database).filter(namespace=env.name).order_by("id")
    messages = QueueMessage.objects.using(env.database).filter(environment=env.name)
    return Stored(
        await sync_to_async(lambda: list(rows.values_list("skill_path", "state")))(),
        await sync_to_async(messages.count)(),
    )


async def steps(env: WorkerEnv, submission_id: str) -> list[str]:
    """Return the states that a submission went through, by its history rows."""
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
