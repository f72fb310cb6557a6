"""The list of submissions page by page, the newest first."""

from __future__ import annotations

from submissions.models import SubmissionEntry
from submissions.states import State
from submissions.store.queries import Shown, every_one
from vskill.environments import WorkerEnv
from vskill.kv.codec import is_storable
from vskill.kv.keyset import binding_of, keyset_page


def submission_page(
    env: WorkerEnv, *, repo_url: str = "", cursor: str = "", limit: int, shown: Shown = every_one
) -> tuple[list[SubmissionEntry], str | None]:
    """Return at most ``limit`` submissions, the newest first, and the cursor of the next page, ``None`` on the last.

    ``repo_url`` narrows the list down, and ``shown`` leaves those that are wanted. What is submitted while somebody
    reads on is behind nobody's cursor. Raises ``InvalidCursor``.
    """
    # A value that is no submission has no time in its columns, and one without a state is unreadable.
    live = SubmissionEntry.objects.using(env.database).live()
    rows = shown(live.filter(namespace=env.name, submitted_at__isnull=False))
    if repo_url:
        # A text that no database can store is no address that was submitted, and PostgreSQL would raise an error.
        rows = rows.filter(repo_url=repo_url) if is_storable(repo_url) else rows.none()
    binding = binding_of(env.name, "submissions", repo_url)
    found, following = keyset_page(rows, ("-submitted_at", "-pk"), binding=binding, cursor=cursor, limit=limit)
    return [entry for entry in found if entry.state in State.__members__], following
