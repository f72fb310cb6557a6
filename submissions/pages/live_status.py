"""Tell browsers at once when a submission changes, by server-sent events; a page that cannot have them asks instead."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Final

from django.core.handlers.asgi import ASGIRequest
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_GET

from submissions.states import FINAL_STATES
from submissions.store.records import SubmissionNotFound
from submissions.store.shown import read_shown
from vskill.accounts.audiences import seeing, seen_as
from vskill.environments import WorkerEnv
from vskill.kv.errors import EntryUnavailable
from vskill.visitors.errors import TooBusy, TooSlow
from vskill.visitors.reads import part_reads
from vskill.web.absent import NotThere
from vskill.worker_context import require_worker_env

# Each costs a small read in an interval. Whoever comes later gets 503, and his page asks every two seconds.
MOST_AT_ONCE: Final = 100
SECONDS_BETWEEN: Final = 1.0
# Then it ends, and a browser that is still there opens another: what was left half-closed does not stay for ever.
SECONDS_AT_MOST: Final = 300.0
# Without a word from time to time, a proxy takes the connection for dead.
SECONDS_OF_SILENCE: Final = 15.0
_AWAY: Final = (DatabaseError, EntryUnavailable, TooBusy, TooSlow)


class _Open:
    """How many streams are open in this process."""

    count = 0


@require_GET
async def events(request: HttpRequest, submission_id: str) -> HttpResponseBase:
    """Send ``change`` with the state as JSON for each change of a submission, and ``end`` once it is decided.

    The first event is the present state. 503 where ``MOST_AT_ONCE`` are open or the server cannot hold one open.
    """
    env = require_worker_env()
    try:
        state = await part_reads.run(_state, env, submission_id)
    except SubmissionNotFound as error:
        raise NotThere(str(error), []) from error
    if _Open.count >= MOST_AT_ONCE or not isinstance(request, ASGIRequest):
        words = "Too many live pages are open. Nothing is wrong with the submission: read its page again.\n"
        return HttpResponse(words, status=503, content_type="text/plain", headers={"Retry-After": "60"})
    return StreamingHttpResponse(
        _stream(env, submission_id, state, seeing()),
        content_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def _state(env: WorkerEnv, submission_id: str) -> tuple[str, int]:
    """Return the state of a submission, and the version of its entry, which grows with each change."""
    submission = read_shown(env, submission_id)
    return submission.state, submission.version


async def _stream(
    env: WorkerEnv, submission_id: str, state: tuple[str, int], audiences: tuple[str, ...]
) -> AsyncIterator[str]:
    loop = asyncio.get_running_loop()
    ends = loop.time() + SECONDS_AT_MOST
    spoke = loop.time()
    _Open.count += 1
    try:
        yield _event("change", state)
        while state[0] not in FINAL_STATES and loop.time() < ends:
            await asyncio.sleep(SECONDS_BETWEEN)
            try:
                # The request is over by now, and what its sender sees with it.
                with seen_as(audiences):
                    found = await part_reads.run(_state, env, submission_id)
            except SubmissionNotFound:
                break
            except _AWAY:
                # The page then asks by itself, and is told what the matter is.
                return
            if found != state:
                state, spoke = found, loop.time()
                yield _event("change", state)
            elif loop.time() - spoke >= SECONDS_OF_SILENCE:
                spoke = loop.time()
                yield ": still here\n\n"
        if loop.time() < ends:
            yield _event("end", state)
    finally:
        _Open.count -= 1


def _event(name: str, state: tuple[str, int]) -> str:
    data = json.dumps({"state": state[0], "version": state[1]})
    return f"event: {name}\ndata: {data}\n\n"
