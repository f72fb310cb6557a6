"""Speak HTTP with an instance that runs in its own processes."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any

from tests.end_to_end.processes import Instance
from tests.process_groups import Started


def address(installation: Instance, path: str) -> str:
    """Return the URL of a path on the instance."""
    return f"http://127.0.0.1:{installation.variables['PORT']}{path}"


def raw_answer(installation: Instance, path: str, document: dict[str, Any] | None = None) -> tuple[int, bytes]:
    """GET a path, or POST a document to it, and return status and body; status 0 means no answer."""
    request = urllib.request.Request(address(installation, path))  # noqa: S310 - our own http address
    if document is not None:
        request.data = json.dumps(document).encode()
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - as above
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()
    except (OSError, HTTPException):
        return 0, b""


def answer(installation: Instance, path: str) -> tuple[int, str]:
    """GET a path and return status and text; status 0 means no answer."""
    status, content = raw_answer(installation, path)
    return status, content.decode()


def body(installation: Instance, path: str) -> dict[str, Any]:
    """Return the JSON object of a successful answer."""
    status, text = answer(installation, path)
    assert status == 200, text[:500]
    value: dict[str, Any] = json.loads(text)
    return value


def until_healthy(installation: Instance, up: Started) -> None:
    """Wait until /healthz reports the web process, the consumer and the scheduler as alive."""
    up.until(lambda: answer(installation, "/healthz")[0] == 200)
