"""Post webhooks and say how each was answered, one after another; runs only as a limited child process.

The parent has checked each host and says which addresses to connect to; no connection is used twice. A redirect is an
answer like any other and is not followed. It is talked to as ``ServingChild`` says. The answer is up to two lines,
the second with the first bytes of what the receiver said. It may never come: a receiver that stays silent then has
answered all the same.
"""

from __future__ import annotations

import base64
import json
import socket
import time
from typing import Any, Final

import urllib3

from submissions.source.pinned_client import Ended, PinnedClient

_ANSWERS: Final = range(200, 600)
_STDIN: Final = 0
# A date has 29 characters.
_LONGEST_HEADER: Final = 64


def _say(talk: socket.socket, **answer: Any) -> None:
    talk.sendall(json.dumps(answer).encode("ascii") + b"\n")


def _post(talk: socket.socket, client: PinnedClient, job: dict[str, Any]) -> None:
    began = time.monotonic()
    try:
        response = client.send("POST", job["to"], base64.b64decode(job["body"]), wanted=_ANSWERS)
    except Ended as ended:
        _say(talk, error=ended.text, milliseconds=round((time.monotonic() - began) * 1000))
        return
    _say(
        talk,
        status=response.status,
        retry_after=response.headers.get("Retry-After", "")[:_LONGEST_HEADER],
        milliseconds=round((time.monotonic() - began) * 1000),
    )
    start = b""
    try:
        while len(start) < job["answer_bytes"] and (some := response.read1(job["answer_bytes"] - len(start))):
            start += some
    except (urllib3.exceptions.HTTPError, OSError):
        # The status counts; what did not come is not missed.
        pass
    _say(talk, answer=base64.b64encode(start).decode())
    response.close()


def main(_arguments: list[str]) -> None:
    """Post what the socket on stdin says, until it is closed."""
    with socket.socket(fileno=_STDIN) as talk, talk.makefile("rb") as lines:
        of_all: dict[str, Any] = json.loads(lines.readline())
        client = PinnedClient(of_all["ca_file"], of_all["proxy"])
        for line in lines:
            _post(talk, client, json.loads(line))
            # The next one goes to another receiver, or to addresses that were checked anew.
            client.close()
            _say(talk, done=True)
