"""One message of JSON-RPC: whether it is a request of MCP, and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from marketplace.api.http import ApiError
from marketplace.errors import InvalidListing
from marketplace.mcp.errors import HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, NO_METHOD, Refused
from marketplace.mcp.methods import METHODS, OF_HANDSHAKE
from marketplace.mcp.versions import LATEST, WITH_HANDSHAKE, version_of
from vskill.environments import WorkerEnv

_HANDSHAKE: Final = "initialize"
# What a client may keep: nothing, because a withdrawal counts at once.
_UNCACHED: Final = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}


@dataclass(frozen=True, slots=True)
class Said:
    """The ``body`` that answers a message, ``None`` where it wants no answer, and the HTTP ``status``."""

    body: dict[str, Any] | None
    status: int = 200


@dataclass(frozen=True, slots=True)
class Headers:
    """What the headers of a request say of its messages: the ``method`` and the ``version``, each empty for nothing."""

    method: str = ""
    version: str = ""


def answered(env: WorkerEnv, message: Any, headers: Headers, *, batched: bool = False) -> Said:
    """Return the answer to a message, which is any JSON, from what ``headers`` say of it.

    One that is ``batched`` with others is no ``initialize``.
    """
    if not isinstance(message, dict):
        return refusal(None, Refused(INVALID_REQUEST, "A message of MCP is a JSON object.", 400))
    known = id_of(message)
    try:
        result = _result(env, message, headers, batched=batched)
    except Refused as refused:
        return refusal(known, refused)
    except (ApiError, InvalidListing) as error:
        return refusal(known, Refused(INVALID_PARAMS, str(error)))
    return Said(None, 202) if result is None else Said({"jsonrpc": "2.0", "id": known, "result": result})


def id_of(message: Mapping[str, Any]) -> str | int | None:
    """Return the id of a message, ``None`` where it has none or one that is none of MCP."""
    known = message.get("id")
    return known if isinstance(known, (str, int)) and not isinstance(known, bool) else None


def unanswered(message: Any, why: str) -> Said:
    """Return what a message gets that is not looked into: an error that says ``why``, a notification nothing."""
    if not isinstance(message, dict):
        return refusal(None, Refused(INVALID_REQUEST, why))
    return refusal(id_of(message), Refused(INVALID_REQUEST, why)) if "id" in message else Said(None, 202)


def refusal(known: str | int | None, refused: Refused) -> Said:
    """Return the answer that refuses the message with an id, ``None`` where it has none."""
    return Said({"jsonrpc": "2.0", "id": known, "error": refused.shape()}, refused.status)


def _result(env: WorkerEnv, message: Mapping[str, Any], headers: Headers, *, batched: bool) -> dict[str, Any] | None:
    method, params = _read(message)
    if headers.method and headers.method != method:
        raise Refused(HEADER_MISMATCH, "The header Mcp-Method names another method than the body.", 400)
    # Which version that is in is what its answer says.
    version = WITH_HANDSHAKE[0] if method == _HANDSHAKE else version_of(headers.version, params)
    if "id" not in message:
        return None
    if batched and method == _HANDSHAKE:
        raise Refused(INVALID_REQUEST, "A batch has no initialize: send it alone.")
    methods = METHODS if version == LATEST else {**OF_HANDSHAKE, **METHODS}
    if method not in methods:
        # Clients of the older versions take a 404 for the end of a session.
        status = 404 if version == LATEST else 200
        raise Refused(NO_METHOD, f"There is no such method here. There are: {', '.join(methods)}.", status)
    result = methods[method](env, params)
    return {**_UNCACHED, **result} if version == LATEST else result


def _read(message: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    method, params = message.get("method"), message.get("params", {})
    strange = message.get("jsonrpc") != "2.0" or ("id" in message and id_of(message) is None)
    if strange or not isinstance(method, str) or not isinstance(params, dict):
        raise Refused(INVALID_REQUEST, "This is no request of MCP.", 400)
    return method, params
