"""Send one webhook under the guards of a fetch: to checked addresses, without redirects, within time and size."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from submissions.notifications.senders import ANSWER_BYTES, Senders
from submissions.source.errors import HostNotAllowed, SourceError
from submissions.source.fetching import source_policy
from submissions.source.pinned_child import Asked
from submissions.source.pinning import pin
from submissions.source.urls import SourcePolicy
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.processes.machine_faults import MachineFault, fault_of_child

SECONDS: Final = 15.0


@dataclass(frozen=True)
class Answer:
    """How a webhook was answered: ``status`` and the start of its ``text``, or the ``error`` that there was instead.

    ``retry_after`` is the header of that name, as it came.
    """

    status: int | None
    milliseconds: int
    text: str = ""
    error: str = ""
    retry_after: str = ""

    @property
    def taken(self) -> bool:
        """Return whether the receiver took it."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def said(self) -> str:
        """Return in a few words what it came to."""
        if self.status is None:
            return self.error
        redirected = ", a redirect, which is not followed" if 300 <= self.status < 400 else ""
        return f"answered with status {self.status}{redirected}"


def webhook_policy(env: WorkerEnv, *, of_operators: bool) -> SourcePolicy:
    """Return where webhooks of ``env`` may go: to public hosts, for operators to ``policy.webhook_private_hosts`` too.

    An account's go to public ones alone: whoever may sign in would reach the inside of the network otherwise.
    """
    sources = source_policy(env)
    private = frozenset(env.policy.webhook_private_hosts if of_operators else ())
    return SourcePolicy(
        private_hosts=private, ca_file=sources.ca_file, proxy=sources.proxy, unproxied=sources.unproxied
    )


async def post(
    env: WorkerEnv,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    senders: Senders,
    of_operators: bool,
    seconds: float = SECONDS,
) -> Answer:
    """Post ``body`` with ``headers`` to the https address ``url``, and return how that was answered.

    Only a webhook ``of_operators`` may go to a private host. Whatever the receiver does, this returns within about
    ``seconds``. Raises MachineFault.
    """
    policy = webhook_policy(env, of_operators=of_operators)
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + seconds
    try:
        to = await pin(url, policy, seconds=seconds)
    except SourceError as error:
        if not of_operators:
            # In the same words, which do not tell an account what names there are inside the network.
            return Answer(None, 0, error="its host was not found on the public internet, so nothing was sent")
        if isinstance(error, HostNotAllowed):
            return Answer(None, 0, error="its host is not on the public internet, so nothing was sent")
        return Answer(None, 0, error="its host was not found by name")
    left = max(0.01, ends_at - loop.time())
    asked = await senders.send(url, to, headers, body, policy, of_operators=of_operators, seconds=left)
    return _answer_of(asked, left)


def _answer_of(asked: Asked, seconds: float) -> Answer:
    if (fault := fault_of_child(asked.stderr)) is not None:
        raise MachineFault(f"a webhook could not be sent from this server: {visible(fault, 200)}")
    found = asked.found
    milliseconds = int(found.get("milliseconds", seconds * 1000))
    if "status" in found:
        start = base64.b64decode(found.get("answer", "")).decode("utf-8", "replace")
        retry_after = str(found.get("retry_after", ""))
        return Answer(int(found["status"]), milliseconds, visible(start, ANSWER_BYTES), retry_after=retry_after)
    if asked.timed_out:
        return Answer(None, milliseconds, error=f"its host did not answer within {seconds:.0f} seconds")
    return Answer(None, milliseconds, error=visible(str(found.get("error") or "its answer could not be read"), 200))
