"""Errors in the form that the clients of an address read; no models are needed, so that bodies are refused early."""

from __future__ import annotations

import json
from typing import Any, Final

from vskill.rate_limits.kinds import Form

# Of JSON-RPC: what was sent is no request that is answered. It has no id, because the body was not read.
_INVALID_REQUEST: Final = -32600


def error_content(form: Form, status: int, code: str, message: str, **more: Any) -> tuple[bytes, str]:
    """Return the body and the media type of an error: JSON with its ``code`` and ``more``, or the form of a dialect.

    ``message`` says what happened and what was kept. Where ``form`` is a page, it is plain text as well: programs print
    a page as it is.
    """
    if form is Form.JSON:
        return json.dumps({"error": code, "message": message, **more}).encode(), "application/json"
    if form is Form.PROBLEM:
        said = {"type": "about:blank", "title": message, "status": status, "detail": message}
        return json.dumps(said).encode(), "application/problem+json"
    if form is Form.RPC:
        refused = {"code": _INVALID_REQUEST, "message": message, "data": {"error": code, **more}}
        return json.dumps({"jsonrpc": "2.0", "id": None, "error": refused}).encode(), "application/json"
    return message.encode(), "text/plain; charset=utf-8"
