"""The calls of operators about skills, submissions and the queue; those about the block list are in ``blocks``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.db import transaction

from marketplace.errors import SkillNotFound
from marketplace.models import ALIAS_PREFIX, SKILL_PREFIX, HistoryEvent, SkillEntry, SkillVersion
from marketplace.operations import OPERATIONS as OF_SKILLS
from marketplace.skills.store import locked_skill
from marketplace.skills.visibility import light_versions
from submissions.api.answers import BadRequest
from submissions.api.staff.calls import NOTHING_DONE, OF_LISTS, Refused, StaffCall, page_of, staff_view
from submissions.operations import OPERATIONS as OF_SUBMISSIONS
from submissions.presentation import as_json, transition_as_json
from submissions.queue.database import get_queue
from submissions.queue.pause import get_pause_sync
from submissions.states import State
from submissions.store.queries import history, read_submission
from submissions.store.records import Submission
from submissions.store.state_counts import count_states
from vskill.access_tokens.scopes import Scope
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat
from vskill.kv.errors import VersionConflict
from vskill.processes.heartbeat import living_sync

# What the pages of the admin ask for.
_SKILLS: Final = "marketplace.change_skillentry"
_SUBMISSIONS: Final = "submissions.change_submissionentry"
_QUEUE: Final = ("submissions.view_queuemessage", "submissions.change_queuemessage")
# The others decide about what is held, which reviewers do.
SUBMISSION_OPERATIONS: Final = {name: OF_SUBMISSIONS[name] for name in ("requeue", "dequeue")}
_EVENTS: Final = 100


def _skill(call: StaffCall) -> Mapping[str, Any]:
    call.needs("marketplace.view_skillentry", _SKILLS)
    call.queries_only(*OF_LISTS)
    row = _row(call.env, call.parts["slug"])
    rows = SkillVersion.objects.using(call.env.database).filter(namespace=call.env.name, skill=row)
    found: list[SkillVersion]
    found, following = page_of(call, light_versions(rows), ("-ordinal", "-pk"), "versions", row.pk)
    events = HistoryEvent.objects.using(call.env.database).filter(namespace=call.env.name, skill=row)
    return {
        **_shown(row),
        "versions": [_version(one) for one in found],
        "nextCursor": following,
        "history": [
            {
                "at": isoformat(one.created_at),
                "actor": one.actor,
                "action": one.action,
                "version": one.version or None,
                "reason": one.reason,
            }
            for one in events.order_by("-id")[:_EVENTS]
        ],
    }


def _row(env: WorkerEnv, slug: str) -> SkillEntry:
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name, key=f"{SKILL_PREFIX}{slug}")
    row: SkillEntry | None = None if f"{SKILL_PREFIX}{slug}".startswith(ALIAS_PREFIX) else rows.first()
    if row is None:
        raise SkillNotFound(f"There is no skill {slug!r} here. {NOTHING_DONE}")
    return row


def _shown(row: SkillEntry) -> dict[str, Any]:
    return {
        "slug": row.slug,
        "seen": row.version,
        "standing": row.standing,
        "audience": row.audience or "",
        "latestVersion": row.latest_version or None,
        "repoUrl": row.repo_url,
    }


def _version(one: SkillVersion) -> dict[str, Any]:
    return {
        "version": one.version,
        "verdict": one.verdict,
        "commit": one.commit_sha,
        "contentHash": one.content_hash,
        "createdAt": isoformat(one.created_at),
        "yanked": one.yank_reason if one.yanked_at is not None else None,
        "quarantined": one.quarantine_reason if one.quarantined_at is not None else None,
    }


def _operate_skill(call: StaffCall) -> Mapping[str, Any]:
    call.needs(_SKILLS)
    call.takes_only("operation", "version", "reason", "seen")
    operation, reason, seen = call.one_of("operation", OF_SKILLS), call.reason(), call.seen()
    version = call.text("version")
    if operation.on_version and not version:
        raise BadRequest(f"'version' is missing: {operation.name} is about one. {NOTHING_DONE}")
    env, slug = call.env, call.parts["slug"]
    with transaction.atomic(using=env.database):
        present = locked_skill(env, slug)
        if present.version != seen:
            message = f"Somebody else has changed {slug} since you looked at it. {NOTHING_DONE}"
            raise Refused(409, VersionConflict.code, message, skill=_shown(present))
        operation.run(env, slug, version, actor=call.actor, reason=reason)
    return _shown(_row(env, slug))


def _submission(call: StaffCall) -> Mapping[str, Any]:
    call.needs("submissions.view_submissionentry", _SUBMISSIONS)
    call.queries_only()
    found = read_submission(call.env, call.parts["submission_id"])
    steps = [transition_as_json(step) for step in history(call.env, found.id)]
    return {**_moved(call.env, found), "history": steps}


def _moved(env: WorkerEnv, submission: Submission) -> dict[str, Any]:
    return {**as_json(env, submission), "seen": submission.version}


def _operate_submission(call: StaffCall) -> Mapping[str, Any]:
    call.needs(_SUBMISSIONS)
    call.takes_only("operation", "reason", "seen")
    operation, reason, seen = call.one_of("operation", SUBMISSION_OPERATIONS), call.reason(), call.seen()
    env, submission_id = call.env, call.parts["submission_id"]
    try:
        return _moved(env, operation.run(env, submission_id, actor=call.actor, reason=reason, seen=seen))
    except VersionConflict as error:
        now = _moved(env, read_submission(env, submission_id))
        raise Refused(409, error.code, str(error), submission=now) from error


def _queue(call: StaffCall) -> Mapping[str, Any]:
    call.needs(*_QUEUE)
    call.queries_only()
    env = call.env
    status, paused = get_queue(env).count(env.name), get_pause_sync(env)
    counts = count_states(env)
    return {
        "waiting": status.waiting,
        "delayed": status.delayed,
        "leased": status.leased,
        "parked": status.parked,
        "oldestAt": isoformat(status.oldest_at) if status.oldest_at is not None else None,
        "consumers": len(living_sync(env, "consumer")),
        "paused": None
        if paused is None
        else {"by": paused.who, "reason": paused.why, "until": isoformat(paused.until) if paused.until else None},
        "states": {str(state): {"count": counts[state].number, "orMore": counts[state].or_more} for state in State},
    }


skill = staff_view(Scope.OPERATE, GET=_skill, POST=_operate_skill)
submission = staff_view(Scope.OPERATE, GET=_submission, POST=_operate_submission)
queue = staff_view(Scope.OPERATE, GET=_queue)
