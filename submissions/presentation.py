"""What pages and API say about submissions, in the same words everywhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from marketplace.addresses import page_address, ref_words, skill_href
from marketplace.capabilities import is_left_unread
from marketplace.catalog import find_skill_sync
from marketplace.coverage import Coverage
from marketplace.models import SkillEntry
from marketplace.pages.contract import contract_context
from marketplace.skills.publishers import is_uploaded, skill_identity
from marketplace.skills.visibility import visible_skills
from marketplace.skills.withdrawal import why_withdrawn
from submissions.appeals import ANSWERS, appeal_as_json, may_appeal
from submissions.chosen_audiences import told_audience
from submissions.discovery import DiscoveredSkill
from submissions.messages import count_ahead
from submissions.models import SubmissionEntry, SubmissionTransition
from submissions.states import FINAL_STATES, STATES, Group, State
from submissions.store.evidence import Evidence, all_evidence_sync, contract_of, shown_evidence
from submissions.store.queries import history
from submissions.store.records import Submission
from vskill.accounts.teams import name_of_audience, words_for
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat, parse_isoformat
from vskill.kv.codec import decode

GROUP_LABELS = {
    Group.ACTIVE: "On their way",
    Group.HELD: "Held for review",
    Group.PUBLISHED: "Published",
    Group.REJECTED: "Refused or need changes",
    Group.BLOCKED: "Blocked",
}
_WITHDRAWN = "It was published, and the operators of this registry have since withdrawn the skill."
_ADVICE = {
    State.TIER1_FAILED: "Change what the findings name, push it, and submit the repository again.",
    State.REJECTED: "Read the findings. When they no longer hold, submit the repository again.",
    State.ON_HOLD: "You need not do anything: an operator of this registry will look at it and approve or refuse it.",
    State.BLOCKED: "Ask the operators of this registry if you think that the block is a mistake.",
    State.DEQUEUED: "Submit it again if you still want it to be checked.",
}


def submission_path(submission_id: str) -> str:
    """Return the address of a submission's page on this server."""
    return page_address("submissions:submission", submission_id)


def as_json(env: WorkerEnv, submission: Submission) -> dict[str, Any]:
    """Return what the API says about a submission; where an audience was chosen, it may wait for the database."""
    info = STATES[submission.state]
    slug = submission.text("slug")
    return {
        "id": submission.id,
        "state": submission.state,
        "status": info.group,
        "stateLabel": info.label,
        "explanation": info.explanation,
        "reason": submission.text("reason"),
        "repoUrl": submission.text("repoUrl"),
        "skillName": submission.text("skillName"),
        "skillPath": submission.text("skillPath"),
        "commitSha": submission.text("commitSha") or None,
        "sourceRef": submission.text("sourceRef") or None,
        "contentHash": submission.text("contentHash") or None,
        "verdict": submission.text("verdict") or None,
        "decision": submission.value.get("decision"),
        "appeal": appeal_as_json(submission.value),
        "audience": name_of_audience(env, audience) if (audience := told_audience(submission.value)) else None,
        "slug": slug or None,
        "version": submission.text("version") or None,
        "skillUrl": f"{env.public_url}{skill_href(slug)}" if slug else None,
        "statusUrl": f"{env.public_url}{submission_path(submission.id)}",
        "createdAt": submission.text("createdAt"),
        "updatedAt": submission.text("updatedAt"),
    }


def withdrawal_of(env: WorkerEnv, submission: Submission) -> str:
    """Return why the skill or version that a submission published is withdrawn; empty where it is not."""
    if submission.state is not State.PUBLISHED:
        return ""
    identity = skill_identity(submission.text("repoUrl"), submission.text("skillPath"))
    return why_withdrawn(env, identity, submission.text("version"))


def found_as_json(skill: DiscoveredSkill, *, named: bool) -> dict[str, Any]:
    """Return what API and command say about a skill before it is submitted; ``named`` is that of its discovery."""
    refused = skill.problems or skill.reserved
    would_be = "refused" if refused else "left out" if skill.internal and not named else "submitted"
    return {
        "skillName": skill.name,
        "skillPath": skill.path,
        "description": skill.description,
        "wouldBe": would_be,
        "problems": list(skill.problems),
        "reserved": skill.reserved or None,
        "notes": list(skill.notes),
        "internal": skill.internal,
        "plannedSlug": skill.slug or None,
        "plainSlugHeldBy": skill.held_by or None,
        "alsoAt": list(skill.also_at),
        "continues": skill.continues,
    }


def transition_as_json(step: SubmissionTransition) -> dict[str, Any]:
    """Return what the API says about one step."""
    return {
        "from": step.from_state or None,
        "to": step.to_state,
        "reason": step.reason,
        "actor": step.actor,
        "trigger": step.trigger,
        "at": isoformat(step.created_at),
    }


def timeline(steps: Iterable[SubmissionTransition]) -> list[dict[str, Any]]:
    """Return the steps as the page shows them, each with the seconds since the one before, never negative."""
    shown: list[dict[str, Any]] = []
    previous: datetime | None = None
    for step in steps:
        duration = max(0.0, (step.created_at - previous).total_seconds()) if previous is not None else None
        previous = step.created_at
        again = step.from_state == step.to_state
        shown.append(
            {
                "from_state": step.from_state,
                "to_state": step.to_state,
                "label": "Put back" if again else STATES[State(step.to_state)].label,
                "reason": step.reason,
                "actor": step.actor,
                "at": step.created_at,
                "duration": duration,
            }
        )
    return shown


def queue_place(env: WorkerEnv, submission_id: str) -> dict[str, Any] | None:
    """Return the place of a submission among those that wait now, or ``None`` where it does not wait.

    Publishers take turns, so what others submit later may still go before it.
    The estimate is the median time of recent checks, times the number of submissions up to and including this one. It
    is too long where several are checked at once, and ``None`` where none was checked recently.
    """
    ahead = count_ahead(env, submission_id)
    if ahead is None:
        return None
    return {"position": ahead + 1, "ahead": ahead, "estimate_seconds": _estimate(env, ahead)}


def _estimate(env: WorkerEnv, ahead: int) -> float | None:
    steps = SubmissionTransition.objects.using(env.database).filter(namespace=env.name)
    ended = steps.filter(from_state=State.TIER1_SCANNING).exclude(to_state__in=[State.RECEIVED, State.TIER1_SCANNING])
    recent = list(ended.order_by("-id").values_list("submission_id", "sequence", "created_at")[:20])
    begun: dict[str, list[tuple[int, datetime]]] = {}
    starts = steps.filter(submission_id__in={one for one, _, _ in recent}, to_state=State.TIER1_SCANNING)
    for submission_id, sequence, created_at in starts.values_list("submission_id", "sequence", "created_at"):
        begun.setdefault(submission_id, []).append((sequence, created_at))
    spans: list[float] = []
    for submission_id, sequence, created_at in recent:
        # A submission may have been checked before: the last start counts, not the first.
        before = [start for start in begun.get(submission_id, []) if start[0] < sequence]
        if before:
            spans.append(max(0.0, (created_at - max(before)[1]).total_seconds()))
    if not spans:
        return None
    return round(sorted(spans)[len(spans) // 2] * (ahead + 1), 1)


def _contract(evidence: list[Evidence], decision: Mapping[str, Any], coverage: Coverage) -> dict[str, Any] | None:
    unread = is_left_unread(str(decision.get("verdict", "")), coverage)
    return contract_context(contract_of(evidence), unread=unread)


def submission_page(env: WorkerEnv, submission: Submission) -> dict[str, Any]:
    """Return the context of a submission's page; call it on a database thread."""
    info, steps, place = STATES[submission.state], history(env, submission.id), queue_place(env, submission.id)
    decision = submission.value.get("decision")
    evidence = all_evidence_sync(env, submission.id) if isinstance(decision, dict) else []
    shown = shown_evidence(evidence)
    slug = submission.text("slug") if submission.state is State.PUBLISHED else ""
    withdrawn = bool(slug) and find_skill_sync(env, slug) is None
    reason = withdrawal_of(env, submission)
    return {
        "submission": {
            "id": submission.id,
            "state": submission.state,
            "state_label": info.label,
            "state_explanation": f"{_WITHDRAWN} {reason}".strip() if withdrawn else reason or info.explanation,
            "group": info.group,
            "repo_url": submission.text("repoUrl"),
            "uploaded": is_uploaded(submission.text("repoUrl")),
            "skill_name": submission.text("skillName"),
            "skill_path": submission.text("skillPath"),
            "commit_sha": submission.text("commitSha"),
            "ref": ref_words(submission.text("sourceRef")),
            "content_hash": submission.text("contentHash"),
            "created_at": parse_isoformat(submission.value.get("createdAt")),
            "updated_at": parse_isoformat(submission.value.get("updatedAt")),
            "audience": words_for(env, audience) if (audience := told_audience(submission.value)) else "",
            "reason": submission.text("reason"),
            "advice": _ADVICE.get(submission.state, ""),
        },
        "timeline": timeline(steps),
        "queue": place,
        "decision": {**decision, **shown} if isinstance(decision, dict) else None,
        "contract": _contract(evidence, decision, shown["coverage"]) if isinstance(decision, dict) else None,
        "files_href": skill_href(slug, "files/") if slug and not withdrawn else "",
        "files_query": f"?{urlencode({'version': submission.text('version')})}",
        "appeal": appeal_as_json(submission.value),
        "appeal_answer": ANSWERS.get((appeal_as_json(submission.value) or {}).get("answer") or "", ""),
        "may_appeal": may_appeal(submission),
        "skill_url": skill_href(slug) if slug and not withdrawn else None,
        "is_final": submission.state in FINAL_STATES,
    }


def shown_slugs(env: WorkerEnv, entries: Iterable[SubmissionEntry]) -> dict[str, str]:
    """Return, by submission id, the slugs of the published skills that the marketplace shows; others are withdrawn."""
    slugs: dict[str, str] = {}
    for entry in entries:
        if entry.state == State.PUBLISHED:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                slugs[entry.submission_id] = str(decode(entry.value)["slug"])
    rows = visible_skills(SkillEntry.objects.using(env.database).filter(namespace=env.name))
    shown = set(rows.filter(slug__in=set(slugs.values())).values_list("slug", flat=True)) if slugs else set()
    return {submission_id: slug for submission_id, slug in slugs.items() if slug in shown}


def listed(entry: SubmissionEntry) -> dict[str, Any]:
    """Return what a list shows of a submission, from its indexed columns."""
    info = STATES[State(entry.state)]
    return {
        "id": entry.submission_id,
        "skill_name": entry.skill_name,
        "skill_path": entry.skill_path,
        "repo_url": entry.repo_url,
        "state": entry.state,
        "state_label": info.label,
        "group": info.group,
        "created_at": entry.submitted_at,
        "updated_at": entry.state_at,
        "href": submission_path(entry.submission_id),
    }
