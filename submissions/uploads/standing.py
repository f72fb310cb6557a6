"""What became of uploads: the newest submission of each, and the name of the account that sent it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.contrib.auth import get_user_model

from submissions.models import SubmissionEntry, UploadedBundle
from submissions.states import STATES
from submissions.store.records import Submission
from submissions.uploads.stored import VERSION_OF_UPLOAD
from vskill.environments import WorkerEnv
from vskill.kv.codec import decode

# Of all skills of a page together, the newest: one is submitted a few times at most.
_MOST_READ: Final = 1000


@dataclass(frozen=True)
class Standing:
    """How an upload stands: who sent it, and its newest submission, ``None`` where there is none any more.

    ``account`` is a name, or the number of an account that is gone. ``entry`` is the key of the submission's row.
    """

    account: str
    submission: Submission | None = None
    entry: int = 0

    @property
    def state(self) -> str:
        """Return its state in words."""
        return STATES[self.submission.state].label if self.submission is not None else "no submission is left"

    @property
    def version(self) -> str:
        """Return the version that the account chose; empty where that is not known."""
        return self.submission.text(VERSION_OF_UPLOAD) if self.submission is not None else ""


def standings(env: WorkerEnv, bundles: Sequence[UploadedBundle]) -> dict[int, Standing]:
    """Return how each upload stands by its key, in two queries; call it on a database thread."""
    users = get_user_model()._default_manager.in_bulk({one.account for one in bundles})
    names = {number: user.get_username() for number, user in users.items()}
    newest: dict[tuple[str, str], tuple[int, Submission]] = {}
    rows = SubmissionEntry.objects.using(env.database).live()
    addresses = {one.address for one in bundles}
    for row in rows.filter(namespace=env.name, repo_url__in=addresses).order_by("-submitted_at")[:_MOST_READ]:
        if (submission := _submission(row)) is not None:
            newest.setdefault((row.repo_url, submission.text("sourceDigest")), (row.pk, submission))
    found = {}
    for one in bundles:
        entry, submission = newest.get((one.address, one.digest), (0, None))
        found[one.pk] = Standing(names.get(one.account, f"account {one.account}, which is gone"), submission, entry)
    return found


def _submission(row: SubmissionEntry) -> Submission | None:
    try:
        value = decode(row.value)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.get("state") not in STATES:
        return None
    return Submission(row.submission_id, row.version, value)
