"""Speak HTTP with an instance that runs in processes of its own."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any

from tests.end_to_end.processes import Instance, Started


def address(installation: Instance, path: str) -> str:
    """Return the whole address of a path on the instance."""
    return f"http://127.0.0.1:{installation.variables['PORT']}{path}"


def raw_answer(installation: Instance, path: str, document: dict[str, Any] | None = None) -> tuple[int, bytes]:
    """Return status and bytes of what answers, 0 while nobody listens; with a document, POST it."""
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
    """Return status and text of an address, 0 while nobody listens."""
    status, content = raw_answer(installation, path)
    return status, content.decode()


def body(installation: Instance, path: str) -> dict[str, Any]:
    """Return the object that the API answers with success."""
    status, text = answer(installation, path)
    assert status == 200, text[:500]
    value: dict[str, Any] = json.loads(text)
    return value


def until_healthy(installation: Instance, up: Started) -> None:
    """Wait until web, consumer and scheduler live."""
    up.until(lambda: answer(installation, "/healthz")[0] == 200)
