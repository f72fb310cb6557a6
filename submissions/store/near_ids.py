"""Ids of submissions that begin as one that nothing has: what is left of an id that was copied in part."""

from __future__ import annotations

import re
from typing import Final

from submissions.models import SubmissionEntry
from submissions.store.shown import shown_submissions
from submissions.store.transitions import submission_key
from vskill.environments import WorkerEnv
from vskill.kv.codec import prefix_end

MOST_IDS: Final = 3
# Too short a beginning would be a way to list them.
_ID: Final = re.compile(r"(?:sub_)?([0-9a-f]{8,32})")


def near_ids(env: WorkerEnv, asked: str) -> list[str]:
    """Return the ids of submissions that begin with the id in ``asked``, at most ``MOST_IDS``; call it on a thread."""
    found = _ID.search(asked[:200].strip().lower())
    if found is None:
        return []
    start = submission_key(f"sub_{found[1]}")
    rows = SubmissionEntry.objects.using(env.database).live().filter(namespace=env.name, key__gte=start)
    keys = (
        shown_submissions(env, rows.filter(key__lt=prefix_end(start)))
        .order_by("key")
        .values_list("key", flat=True)[:MOST_IDS]
    )
    return [str(key).removeprefix(submission_key("")) for key in keys]
