"""Limit the body of a request before Django sees it, which would first write all of it to a temporary file."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from vskill.rate_limits.kinds import form_of
from vskill.web.error_forms import error_content

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

# The largest legitimate body that is no upload is the form with the list of a repository's skills.
MAX_BODY_BYTES: Final = 1024 * 1024
# A whole skill, and what a form adds to it.
MAX_UPLOAD_BYTES: Final = 12 * 1024 * 1024
# The push of 2,000 commits, which is what GitHub lists at most, with the files of each.
MAX_WEBHOOK_BYTES: Final = 8 * 1024 * 1024
_WEBHOOKS: Final = re.compile(r"/api/v1/webhooks/[a-z]+")
# By which a git host signs it, or shows its secret.
_SIGNATURES: Final = frozenset(
    {
        *(b"x-hub-signature-256", b"x-gitea-signature", b"x-forgejo-signature"),
        *(b"webhook-signature", b"x-gitlab-token"),
    }
)
# Where programs upload: a whole skill, or one file of it.
_UPLOADS: Final = re.compile(r"/api/v1/skills(?:/-/upload/[^/]+)?")
_BEARER: Final = b"bearer vsk_"
# Without this limit, a slow client could hold a connection and a file open for any time.
MAX_BODY_SECONDS: Final = 60.0
_ANSWERS: Final = {
    413: ("too_large", "The body of this request is too large. Nothing was read or changed."),
    408: ("timeout", "The body of this request took too long to arrive. Nothing was changed."),
}


class LimitBodies:
    """ASGI middleware that answers 413 to a body of more than ``limit`` bytes, whether or not its length is announced.

    An upload that bears a token may have ``MAX_UPLOAD_BYTES``, and a webhook that bears a signature
    ``MAX_WEBHOOK_BYTES``. A body that has not arrived completely after
    ``seconds`` is answered with 408. Websockets are refused.
    """

    def __init__(
        self, application: Application, limit: int = MAX_BODY_BYTES, seconds: float = MAX_BODY_SECONDS
    ) -> None:
        self._application = application
        self._limit = limit
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on to the application, with no more of its body than the limit."""
        if scope["type"] == "websocket":
            # Servers hand these on where a library for them happens to be installed. Closed before it is accepted, it
            # is answered with 403; Django would raise an error.
            await receive()
            await send({"type": "websocket.close"})
            return
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        limit = max(self._limit, _more_for(scope))
        if _announced(scope, limit) > limit:
            await _refuse(scope, send, 413)
            return
        body = _Body(receive, limit, asyncio.get_running_loop().time() + self._seconds)
        answering = False

        async def watched_send(message: Message) -> None:
            nonlocal answering
            answering = True
            await send(message)

        await self._application(scope, body.receive, watched_send)
        if body.refused and not answering:
            await _refuse(scope, send, body.refused)


def _more_for(scope: Scope) -> int:
    """Return how many bytes a request may have by its address, and by a token or signature, which is checked later."""
    path = str(scope.get("path", ""))
    if scope.get("method") != "POST":
        return 0
    if _UPLOADS.fullmatch(path) and dict(scope["headers"]).get(b"authorization", b"").lower().startswith(_BEARER):
        return MAX_UPLOAD_BYTES
    if _WEBHOOKS.fullmatch(path) and any(name in _SIGNATURES for name, _value in scope["headers"]):
        return MAX_WEBHOOK_BYTES
    return 0


def _announced(scope: Scope, limit: int) -> int:
    length = dict(scope["headers"]).get(b"content-length", b"")
    return int(length) if length.isdigit() and len(length) < 20 else limit + 1 if length else 0


class _Body:
    """The body of one request as it arrives; ``refused`` is 413 or 408 once it is too large or too slow, else 0."""

    def __init__(self, receive: Receive, limit: int, deadline: float) -> None:
        self.refused = 0
        self._receive = receive
        self._left = limit
        self._deadline = deadline
        self._complete = False

    async def receive(self) -> Message:
        """Return the next message; a disconnect once the body is refused, so that the framework stops reading."""
        if self._complete:
            # Only the client's disconnect can follow, and the answer may take any time until then.
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


async def _refuse(scope: Scope, send: Send, status: int) -> None:
    content, media = error_content(form_of(str(scope.get("path", ""))), status, *_ANSWERS[status])
    headers = [
        (b"content-type", media.encode()),
        (b"content-length", str(len(content)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
