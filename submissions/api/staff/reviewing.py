"""The calls of reviewers: what waits for them, one submission with its findings, the decision about it, its undo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from submissions.api.staff.calls import LONGEST_TEXT, OF_LISTS, Refused, StaffCall, page_of, staff_view
from submissions.models import HeldSubmission
from submissions.presentation import as_json, transition_as_json
from submissions.review.decide import DECISIONS, decide
from submissions.review.queue import FILTERS, ORDER, count_left, narrowed
from submissions.review.undo import undo
from submissions.review_rank import has_open_appeal, review_rank, strength_words
from submissions.store.evidence import all_evidence_sync, findings_of
from submissions.store.queries import history, read_submission
from submissions.store.records import Submission
from submissions.store.signs import stored_holding
from vskill.access_tokens.scopes import Scope
from vskill.environments import WorkerEnv
from vskill.kv.codec import is_storable
from vskill.kv.errors import VersionConflict

# What the pages of the admin ask for.
_VIEW: Final = ("submissions.view_submissionentry", "submissions.change_submissionentry")
_CHANGE: Final = "submissions.change_submissionentry"


def _waiting(call: StaffCall) -> Mapping[str, Any]:
    call.needs(*_VIEW)
    call.queries_only(*FILTERS, *OF_LISTS)
    chosen = {name: call.request.GET.get(name, "") for name in FILTERS}
    if any(len(value) > LONGEST_TEXT or not is_storable(value) for value in chosen.values()):
        raise Refused(400, "bad_request", f"A filter has at most {LONGEST_TEXT} characters. Nothing was read.")
    # What has no time is a value that is no submission, which nobody could decide about.
    rows = narrowed(call.env, chosen).filter(submitted_at__isnull=False)
    found: list[HeldSubmission]
    found, following = page_of(call, rows, ORDER, "review", *chosen.values())
    return {
        "items": [_item(call.env, entry) for entry in found],
        "waiting": count_left(call.env, chosen),
        "nextCursor": following,
    }


def _item(env: WorkerEnv, entry: HeldSubmission) -> dict[str, Any]:
    return {
        "id": entry.submission_id,
        "seen": entry.version,
        "state": entry.state,
        "skillName": entry.skill_name,
        "skillPath": entry.skill_path,
        "repoUrl": entry.repo_url,
        "verdict": entry.verdict or None,
        "strength": strength_words(entry.review_rank or 0),
        "submittedAt": entry.submitted_at.isoformat() if entry.submitted_at is not None else "",
        "reviewUrl": f"{env.public_url}/api/v1/review/{entry.submission_id}",
    }


def _one(call: StaffCall) -> Mapping[str, Any]:
    call.needs(*_VIEW)
    call.queries_only()
    return _described(call.env, read_submission(call.env, call.parts["submission_id"]))


def _described(env: WorkerEnv, submission: Submission) -> dict[str, Any]:
    holding = set(stored_holding(env, submission.id))
    found = findings_of(all_evidence_sync(env, submission.id))
    return {
        **_moved(env, submission),
        "findings": [{**one.as_json(), "holds": one in holding} for one in found],
        "history": [transition_as_json(step) for step in history(env, submission.id)],
    }


def _moved(env: WorkerEnv, submission: Submission) -> dict[str, Any]:
    """Return a submission with the number by which the next decision names what was looked at."""
    rank = review_rank(submission.value)
    return {
        **as_json(env, submission),
        "seen": submission.version,
        "toReview": rank is not None,
        "appealed": has_open_appeal(submission.value),
        "approvedBy": submission.text("approvedBy") or None,
    }


def _decide(call: StaffCall) -> Mapping[str, Any]:
    call.needs(_CHANGE)
    call.takes_only("decision", "reason", "seen")
    choice, reason, seen = call.one_of("decision", DECISIONS), call.reason(), call.seen()
    if choice.permission:
        # It writes a list of the operators, for which a token that reviews was not made.
        call.needs(choice.permission, scope=Scope.OPERATE)
    env, submission_id = call.env, call.parts["submission_id"]
    present = read_submission(env, submission_id)
    if present.version == seen and review_rank(present.value) is None:
        raise Refused(409, "not_in_review", f"It is {present.state}, which nobody decides about. It was left as it is.")
    try:
        decided = decide(env, submission_id, choice, actor=call.actor, reason=reason, seen=seen)
    except VersionConflict as error:
        raise _overtaken(env, submission_id, error) from error
    return _moved(env, decided)


def _undo(call: StaffCall) -> Mapping[str, Any]:
    call.needs(_CHANGE)
    call.takes_only("reason", "seen")
    env, submission_id, reason, seen = call.env, call.parts["submission_id"], call.reason(), call.seen()
    try:
        return _moved(env, undo(env, submission_id, actor=call.actor, reason=reason, seen=seen, own=True))
    except VersionConflict as error:
        raise _overtaken(env, submission_id, error) from error


def _overtaken(env: WorkerEnv, submission_id: str, error: VersionConflict) -> Refused:
    # Whoever repeats a call whose answer was lost reads here what became of it.
    return Refused(409, error.code, str(error), submission=_moved(env, read_submission(env, submission_id)))


waiting = staff_view(Scope.REVIEW, GET=_waiting)
one = staff_view(Scope.REVIEW, GET=_one)
decision = staff_view(Scope.REVIEW, POST=_decide)
undone = staff_view(Scope.REVIEW, POST=_undo)
