"""Post one webhook and say how it was answered; runs only as a limited child process.

The parent has checked the host and says which addresses to connect to. A redirect is an answer like any other and is
not followed. The job is JSON on stdin; the answer is up to two lines of JSON, the second with the first bytes of what
the receiver said. It may never come: a receiver that stays silent then has answered all the same.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from typing import Any, Final

import urllib3

from submissions.source.pinned_client import Ended, PinnedClient

_ANSWERS: Final = range(200, 600)


def _say(**answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main(_arguments: list[str]) -> None:
    """Do the job on stdin, and print how it was answered."""
    job: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    began = time.monotonic()
    client = PinnedClient(job["ca_file"], job["proxy"])
    try:
        response = client.send("POST", job["to"], base64.b64decode(job["body"]), wanted=_ANSWERS)
    except Ended as ended:
        _say(error=ended.text, milliseconds=round((time.monotonic() - began) * 1000))
        return
    _say(status=response.status, milliseconds=round((time.monotonic() - began) * 1000))
    start = b""
    try:
        while len(start) < job["answer_bytes"] and (some := response.read1(job["answer_bytes"] - len(start))):
            start += some
    except (urllib3.exceptions.HTTPError, OSError):
        # The status counts; what did not come is not missed.
        pass
    _say(answer=base64.b64encode(start).decode())
    response.close()
