"""A mail server on loopback that speaks real SMTP and keeps what it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP

from tests.submissions.notifications.receiver import served


@dataclass
class MailServer:
    """What it took; ``refuses`` is the line with which it refuses every recipient, empty: it takes all."""

    taken: list[EmailMessage] = field(default_factory=list)
    refuses: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    async def handle_RCPT(  # noqa: N802 - the name aiosmtpd gives it
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        if self.refuses:
            return self.refuses
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - as above
        parsed: Any = message_from_bytes(envelope.content, policy=policy.default)
        self.taken.append(parsed)
        return "250 OK"


@contextmanager
def mail_server() -> Iterator[MailServer]:
    """Run a mail server on a thread of its own; ``options`` are how it is reached."""
    one = MailServer()

    async def start() -> asyncio.Server:
        return await asyncio.get_running_loop().create_server(lambda: SMTP(one, hostname="mail.test"), "127.0.0.1", 0)

    with served(start) as port:
        backend = "django.core.mail.backends.smtp.EmailBackend"
        one.options = {"backend": backend, "host": "127.0.0.1", "port": port, "timeout": 15}
        yield one
