"""Upload as clawhub does: both of its forms, over HTTP."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from django.contrib.auth import get_user_model
from django.test import Client

from tests.git_factory import skill_md
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import make_token
from vskill.environments import WorkerEnv

SKILLS: Final = "/api/v1/skills"
BOUNDARY: Final = "----formdata-undici-012345678901"
FILES: Final[Mapping[str, bytes]] = {
    "SKILL.md": skill_md("pdf-tools", "Merges documents.").encode(),
    "scripts/run.sh": b"#!/bin/sh\necho hello\n",
    "data/table.bin": b"\0\xff\r\n\n",
}


def token_for(env: WorkerEnv, name: str = "ada", *scopes: Scope) -> str:
    """Return a token of the account ``name``, for ``publish`` unless ``scopes`` say otherwise."""
    user, _new = get_user_model()._default_manager.get_or_create(username=name)
    return make_token(env, user, name="laptop", scopes=scopes or [Scope.PUBLISH])[1]


def payload(**changed: Any) -> dict[str, Any]:
    """Return what clawhub says of an upload, with what is ``changed``."""
    said = {
        "slug": "pdf-tools",
        "displayName": "Pdf Tools",
        "version": "1.0.0",
        "changelog": "",
        "acceptLicenseTerms": True,
        "tags": ["latest"],
    }
    return {**said, **changed}


def form(said: Mapping[str, Any] | str, files: Sequence[tuple[str, bytes]]) -> bytes:
    """Return the body that a client's ``FormData`` is sent as."""
    text = said if isinstance(said, str) else json.dumps(said)
    parts = [b'Content-Disposition: form-data; name="payload"\r\n\r\n' + text.encode()]
    for path, content in files:
        name = path.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22").encode()
        head = b'Content-Disposition: form-data; name="files"; filename="' + name + b'"\r\n'
        parts.append(head + b"Content-Type: application/octet-stream\r\n\r\n" + content)
    edge = f"--{BOUNDARY}".encode()
    return b"".join(edge + b"\r\n" + part + b"\r\n" for part in parts) + edge + b"--\r\n"


def publish_form(
    token: str | None,
    files: Mapping[str, bytes] | Sequence[tuple[str, bytes]] = FILES,
    *,
    said: Mapping[str, Any] | str | None = None,
    **changed: Any,
) -> Any:
    """Upload in one request and return the answer; without a ``token`` as a stranger."""
    listed = list(files.items()) if isinstance(files, Mapping) else files
    body = form(payload(**changed) if said is None else said, listed)
    kind = f"multipart/form-data; boundary={BOUNDARY}"
    return Client().post(SKILLS, body, content_type=kind, headers=_headers(token))


def post_json(token: str | None, path: str, body: Any) -> Any:
    """Send JSON with a token and return the answer."""
    text = body if isinstance(body, str | bytes) else json.dumps(body)
    return Client().post(path, text, content_type="application/json", headers=_headers(token))


def named(path: str, content: bytes, **changed: Any) -> dict[str, Any]:
    """Return what clawhub says of one file."""
    return {"path": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest(), **changed}


def send_ahead(token: str, path: str, content: bytes) -> dict[str, Any]:
    """Upload one file ahead as clawhub does, and return what it then says of it."""
    said = {**named(path, content), "contentType": "text/plain"}
    answer = post_json(token, f"{SKILLS}/-/upload-url", said)
    assert answer.status_code == 200, answer.content
    given = answer.json()
    stored = send_bytes(token, given["uploadUrl"], content)
    assert stored.status_code == 200, stored.content
    return {**said, "storageId": stored.json()["storageId"], "uploadTicket": given["uploadTicket"]}


def send_bytes(token: str | None, address: str, content: bytes) -> Any:
    """Send bytes to the address that was given for them."""
    return Client().post(urlsplit(address).path, content, content_type="text/plain", headers=_headers(token))


def publish_json(token: str, files: Mapping[str, bytes] = FILES, **changed: Any) -> Any:
    """Upload each file ahead and then their list, and return the answer to that."""
    sent = [send_ahead(token, path, content) for path, content in files.items()]
    return post_json(token, SKILLS, payload(ownerHandle="ada", **{"files": sent, **changed}))


def _headers(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}
