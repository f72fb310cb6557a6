"""What a held submission is weighed with: the record of its owner, and skills that are like it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, Final

from django.urls import reverse

from marketplace.addresses import skill_href
from marketplace.likeness.known import find_similar
from marketplace.likeness.published import degree, same_content, similar_content
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
# Published archives that are read for one page.
_MOST_READ: Final = 20


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
    """Return what is like a submission, each with why.

    It has the same content or similar text, is the same skill before, or has the same name. The 20 published versions
    that have most in common are compared.
    """
    found: list[dict[str, str]] = []
    content, rows = submission.text("contentHash"), SubmissionEntry.objects.using(env.database)
    if content:
        made = signature_from_value(read_signature_sync(env, submission.id))
        same = same_content(env, content, made.normal_digest)[:_MOST_SHOWN]
        found += [
            {
                "why": f"same content{'' if one.content_hash == content else ' but for names and spaces'}, published",
                "name": str(one),
                "href": skill_href(one.skill.slug),
            }
            for one in same
        ]
        found += _similar_text(env, made.sketch, {one.pk for one in same})
    others = rows.filter(namespace=env.name).exclude(key=f"sub:{submission.id}")
    ways = (
        ("same skill, earlier", {"identity": submission.text("identity")}, "-submitted_at"),
        ("same name", {"skill_name": submission.text("skillName")}, "skill_name"),
    )
    known: set[str] = set()
    for why, equal, order in ways:
        if not all(equal.values()):
            continue
        for entry in others.filter(**equal).order_by(order)[:_MOST_SHOWN]:
            if entry.submission_id in known:
                continue
            known.add(entry.submission_id)
            state = STATES[State(entry.state)].label if entry.state in State.__members__ else "unreadable"
            words = f"{why}, {entry.repo_url}, {state}" if why == "same name" else f"{why}, {state}"
            if content and entry.content_hash == content:
                words += ", same content"
            found.append({"why": words, "name": entry.skill_name, "href": submission_path(entry.submission_id)})
    return found


def _similar_text(env: WorkerEnv, sketch: tuple[int, ...], known: Collection[int]) -> list[dict[str, str]]:
    """Return the known bad content and the published versions with similar text, but for the versions ``known``."""
    found = []
    if (bad := find_similar(env, sketch)) is not None:
        entry, likeness = bad
        address = reverse("admin:marketplace_knownbad_change", args=[entry.pk])
        why = f"{degree(likeness):.0%} of the text is that of known bad content: {entry.reason}"
        found.append({"why": why, "name": entry.name, "href": address})
    alike = [one for one in similar_content(env, sketch, most=_MOST_READ) if one.version.pk not in known]
    return found + [
        {
            "why": f"{degree(one.likeness):.0%} of the text is the same, published from {one.version.skill.repo_url}",
            "name": str(one.version),
            "href": skill_href(one.version.skill.slug),
        }
        for one in alike[:_MOST_SHOWN]
    ]
