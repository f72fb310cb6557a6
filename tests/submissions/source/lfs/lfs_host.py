"""A git host with Git LFS on loopback: an honest one, whose answers a test can make hostile."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from submissions.source.lfs.pointers import Pointer
from tests.submissions.source.https_host import Answer, HttpsHost, https_host


def pointer_text(content: bytes) -> str:
    """Return what git-lfs commits in the place of ``content``."""
    oid = hashlib.sha256(content).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"


def pointer(content: bytes) -> Pointer:
    return Pointer(hashlib.sha256(content).hexdigest(), len(content))


@dataclass
class LfsHost:
    """What the host has, the headers of each request for an object, and what it puts into the places it names."""

    host: HttpsHost
    objects: dict[str, bytes] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    seen: list[dict[str, str]] = field(default_factory=list)
    place: dict[str, Any] = field(default_factory=dict)

    @property
    def base(self) -> str:
        return f"https://127.0.0.1:{self.host.port}"

    def add(self, *contents: bytes) -> None:
        for content in contents:
            self.objects[pointer(content).oid] = content

    def batch(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Answer as the batch API does."""
        question = json.loads(body)
        self.asked.append(question)
        answered = []
        for one in question["objects"]:
            if one["oid"] in self.objects:
                place = {"href": f"{self.base}/objects/{one['oid']}", **self.place}
                answered.append({**one, "actions": {"download": place}})
            else:
                answered.append({**one, "error": {"code": 404, "message": "Object does not exist"}})
        send(handler, 200, json.dumps({"transfer": "basic", "objects": answered}).encode())

    def give(self, handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        """Send an object."""
        self.seen.append(dict(handler.headers.items()))
        content = self.objects.get(handler.path.rpartition("/")[2])
        send(handler, 404 if content is None else 200, content or b"")


def send(
    handler: BaseHTTPRequestHandler, status: int, content: bytes = b"", headers: Mapping[str, str] | None = None
) -> None:
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(content)


def always(status: int, content: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer that is the same for every request."""
    return lambda handler, _body: send(handler, status, content, headers)


@contextmanager
def lfs_host(root: Path, batch: str = "/a/skills.git/info/lfs/objects/batch") -> Iterator[LfsHost]:
    """Serve the repositories below ``root``, and objects of the one whose API is at ``batch``."""
    with https_host(root) as host:
        served = LfsHost(host)
        host.answers[batch] = served.batch
        host.answers["/objects/"] = served.give
        yield served


def put_object(repository: Path, content: bytes, named: Pointer | None = None) -> Path:
    """Put an object where git-lfs keeps it in a bare repository, under the name of another one too; return its path."""
    oid = (named or pointer(content)).oid
    path = repository / "lfs" / "objects" / oid[:2] / oid[2:4] / oid
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path
