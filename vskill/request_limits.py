"""Bound the body of a request before the framework sees it: Django would write all of it to a temporary file first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

# Nothing is uploaded here: the largest honest body is the form with the list of a repository's skills.
MAX_BODY_BYTES: Final = 1024 * 1024
# Who sends more slowly holds a connection and a file open for as long as he likes.
MAX_BODY_SECONDS: Final = 60.0
_ANSWERS: Final = {
    413: b"The body of this request is too large. Nothing was read or changed.\n",
    408: b"The body of this request took too long to arrive. Nothing was changed.\n",
}


class LimitBodies:
    """An ASGI application that answers 413 to a body over the limit, whether its length is announced or not.

    A body that has not arrived after ``seconds`` is answered 408.
    """

    def __init__(
        self, application: Application, limit: int = MAX_BODY_BYTES, seconds: float = MAX_BODY_SECONDS
    ) -> None:
        self._application = application
        self._limit = limit
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and take no more of its body than the limit."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        if self._announced(scope) > self._limit:
            await _refuse(send, 413)
            return
        body = _Body(receive, self._limit, asyncio.get_running_loop().time() + self._seconds)
        answering = False

        async def watched_send(message: Message) -> None:
            nonlocal answering
            answering = True
            await send(message)

        await self._application(scope, body.receive, watched_send)
        if body.refused and not answering:
            await _refuse(send, body.refused)

    def _announced(self, scope: Scope) -> int:
        length = dict(scope["headers"]).get(b"content-length", b"")
        return int(length) if length.isdigit() and len(length) < 20 else self._limit + 1 if length else 0


class _Body:
    """Takes a body from the client; ``refused`` is the status that answers one that was not taken to its end."""

    def __init__(self, receive: Receive, limit: int, deadline: float) -> None:
        self.refused = 0
        self._receive = receive
        self._left = limit
        self._deadline = deadline
        self._complete = False

    async def receive(self) -> Message:
        """Return the next message; to the framework a client whose body is refused has gone away, so that it stops."""
        if self._complete:
            # What follows is only that the client leaves, however long the answer takes.
            return await self._receive()
        if not self.refused:
            try:
                async with asyncio.timeout_at(self._deadline):
                    message = await self._receive()
            except TimeoutError:
                self.refused = 408
            else:
                self._left -= len(message.get("body", b""))
                self._complete = not message.get("more_body", False)
                if self._left >= 0:
                    return message
                self.refused, self._complete = 413, False
        return {"type": "http.disconnect"}


async def _refuse(send: Send, status: int) -> None:
    answer = _ANSWERS[status]
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(answer)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": answer})
