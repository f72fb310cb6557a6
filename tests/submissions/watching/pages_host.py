"""A host on loopback with pages whose content a test changes, and skills that refer to them."""

from __future__ import annotations

import hashlib
import json
from http.server import BaseHTTPRequestHandler
from typing import Any

from django.db.models import F

from marketplace.models import ReferenceEntry
from marketplace.models.references import ADDRESS_PREFIX
from tests.marketplace.pages.page_factory import contract, publish, reference
from tests.submissions.source.https_host import HttpsHost
from tests.submissions.source.lfs.lfs_host import send
from vskill.environments import WorkerEnv


class Pages:
    """What lies below ``/page``, and the headers of each request for it."""

    def __init__(self, host: HttpsHost) -> None:
        self.host, self.content, self.status = host, b"Be brief.", 200
        self.media_type = "text/markdown"
        self.asked: list[dict[str, str]] = []
        host.answers["/page"] = self.give

    def give(self, handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        self.asked.append(dict(handler.headers.items()))
        etag = f'"{hashlib.sha256(self.content).hexdigest()[:8]}"'
        if handler.headers.get("If-None-Match") == etag and self.status == 200:
            send(handler, 304)
        else:
            send(handler, self.status, self.content, {"ETag": etag, "Content-Type": self.media_type})

    def url(self, path: str = "/page/rules.md") -> str:
        return f"https://127.0.0.1:{self.host.port}{path}"


def publish_one(env: WorkerEnv, pages: Pages, *urls: str, **details: Any) -> None:
    """Publish a skill of a repository on that host, which refers to ``urls``, by default to its page."""
    repo_url = details.pop("repo_url", f"https://127.0.0.1:{pages.host.port}/acme/skills")
    referred = [reference(url) for url in urls or (pages.url(),)]
    publish(env, "notes", repo_url=repo_url, contract=contract(*referred), **details)


def make_due() -> None:
    """Let a day pass for all addresses."""
    rows: Any = ReferenceEntry.objects
    for row in rows.filter(key__startswith=ADDRESS_PREFIX):
        value = {**json.loads(row.value), "dueAt": "2020-01-01T00:00:00.000Z"}
        rows.filter(pk=row.pk).write_row(
            value=json.dumps(value), version=F("version") + 1, **ReferenceEntry.project(value)
        )
