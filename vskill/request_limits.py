"""Bound the body of a request before the framework sees it: Django would write all of it to a temporary file first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

# Nothing is uploaded here: the largest honest body is the form with the list of a repository's skills.
MAX_BODY_BYTES: Final = 1024 * 1024
_ANSWER: Final = b"The body of this request is too large. Nothing was read or changed.\n"


class LimitBodies:
    """An ASGI application that answers 413 to a body over the limit, whether its length is announced or not."""

    def __init__(self, application: Application, limit: int = MAX_BODY_BYTES) -> None:
        self._application = application
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and take no more of its body than the limit."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        if self._announced(scope) > self._limit:
            await _refuse(send)
            return
        taken = 0
        answering = False

        async def limited_receive() -> Mapping[str, Any]:
            nonlocal taken
            if taken > self._limit:
                return {"type": "http.disconnect"}
            message = await receive()
            taken += len(message.get("body", b""))
            # To the framework the client has gone away: it stops reading and forgets what it has.
            return message if taken <= self._limit else {"type": "http.disconnect"}

        async def watched_send(message: Mapping[str, Any]) -> None:
            nonlocal answering
            answering = True
            await send(message)

        await self._application(scope, limited_receive, watched_send)
        if taken > self._limit and not answering:
            await _refuse(send)

    def _announced(self, scope: Scope) -> int:
        length = dict(scope["headers"]).get(b"content-length", b"")
        return int(length) if length.isdigit() and len(length) < 20 else self._limit + 1 if length else 0


async def _refuse(send: Send) -> None:
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(_ANSWER)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": _ANSWER})
