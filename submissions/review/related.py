"""What a held submission is weighed with: the record of its owner, and skills that are like it."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from marketplace.addresses import skill_href
from marketplace.likeness.published import same_content
from marketplace.likeness.signature import signature_from_value
from marketplace.skills.publishers import publisher_identity
from submissions.models import SubmissionEntry
from submissions.presentation import GROUP_LABELS, submission_path
from submissions.states import STATES, State
from submissions.store.evidence import read_signature_sync
from submissions.store.records import Submission
from vskill.environments import WorkerEnv
from vskill.read_only_admin import prefix_range

MOST_COUNTED: Final = 10_000
_MOST_SHOWN: Final = 10


def owner_history(env: WorkerEnv, submission: Submission) -> dict[str, Any]:
    """Return how many submissions of the same owner ended how, and since when there are any.

    Of an owner with more than ``MOST_COUNTED``, as many are counted.
    """
    owner = publisher_identity(submission.text("repoUrl"))
    address = submission.text("repoUrl").rpartition("/")[0]
    rows = SubmissionEntry.objects.using(env.database).filter(namespace=env.name)
    of_owner = rows.filter(prefix_range("repo_url", f"{address}/"))
    seen = list(of_owner.order_by("repo_url").values_list("state", "submitted_at")[:MOST_COUNTED])
    groups = Counter(STATES[State(state)].group for state, _at in seen if state in State.__members__)
    times = [at for _state, at in seen if at is not None]
    return {
        "owner": owner,
        "filter": owner,
        "counts": [{"label": label, "count": groups[group]} for group, label in GROUP_LABELS.items()],
        "since": min(times, default=None),
        "more": len(seen) == MOST_COUNTED,
    }


def similar(env: WorkerEnv, submission: Submission) -> list[dict[str, str]]:
    """Return what is like a submission, each with why: the same content, the same skill before, the same name."""
    found: list[dict[str, str]] = []
    content, rows = submission.text("contentHash"), SubmissionEntry.objects.using(env.database)
    if content:
        normal = signature_from_value(read_signature_sync(env, submission.id)).normal_digest
        found += [
            {
                "why": f"same content{'' if one.content_hash == content else ' but for names and spaces'}, published",
                "name": str(one),
                "href": skill_href(one.skill.slug),
            }
            for one in same_content(env, content, normal)[:_MOST_SHOWN]
        ]
    others = rows.filter(namespace=env.name).exclude(key=f"sub:{submission.id}")
    ways = (
        ("same skill, earlier", {"identity": submission.text("identity")}, "-submitted_at"),
        ("same name", {"skill_name": submission.text("skillName")}, "skill_name"),
    )
    known: set[str] = set()
    for why, same, order in ways:
        if not all(same.values()):
            continue
        for entry in others.filter(**same).order_by(order)[:_MOST_SHOWN]:
            if entry.submission_id in known:
                continue
            known.add(entry.submission_id)
            state = STATES[State(entry.state)].label if entry.state in State.__members__ else "unreadable"
            words = f"{why}, {entry.repo_url}, {state}" if why == "same name" else f"{why}, {state}"
            if content and entry.content_hash == content:
                words += ", same content"
            found.append({"why": words, "name": entry.skill_name, "href": submission_path(entry.submission_id)})
    return found
