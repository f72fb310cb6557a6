"""Waive findings of a held submission: which ones can be, and the decision that does it and has it checked again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Final

from django.db import transaction
from django.http import QueryDict

from submissions.operations import requeue
from submissions.review.decide import DECISIONS, Choice, hold_again
from submissions.states import IllegalTransition, State
from submissions.store.decided import answered, read_seen
from submissions.store.evidence import all_evidence_sync, findings_of
from submissions.store.held_files import HeldFile, let_expire, read_held
from submissions.store.records import Submission
from submissions.store.signs import SignOutcome, overturn_rules, stored_holding
from submissions.store.transitions import touch
from submissions.verification.findings import Finding
from submissions.verification.fingerprints import FileContent, WaiverScope, by_shown_name, fingerprint
from submissions.waivers.store import InvalidWaiver, Waivable, grant
from vskill.environments import WorkerEnv
from vskill.hidden_characters import reveal_hidden

WAIVE: Final = Choice("waive", "findings waived, and checked again", "submissions.add_waiver")
CHOICES: Final[Mapping[str, Choice]] = {**DECISIONS, WAIVE.name: WAIVE}
_LONGEST_OWNER: Final = 150


def waivable(findings: Iterable[Finding], files: Sequence[HeldFile] | None) -> list[Waivable]:
    """Return what can be waived of some findings, each with each scope, from the ``files`` that were kept."""
    contents = by_shown_name((one.path, FileContent(one.sha256, _reader(one))) for one in files or ())
    found = []
    for finding in findings:
        content = contents.get(finding.file)
        for scope in WaiverScope:
            made = fingerprint(finding, scope, content) if content is not None else None
            if made is not None:
                found.append(Waivable(finding, scope, made))
    return found


def _reader(file: HeldFile) -> Callable[[], str | None]:
    return lambda: file.text


def until_end_of(day: str) -> datetime:
    """Return the end of a day of UTC, given as 2026-02-28; raises ``InvalidWaiver`` for another text."""
    try:
        parsed = datetime.strptime(day, "%Y-%m-%d").date()  # noqa: DTZ007 - a day; its end is one of UTC
        return datetime.combine(parsed + timedelta(days=1), time(), UTC) - timedelta(seconds=1)
    except (ValueError, OverflowError) as error:
        raise InvalidWaiver(
            "A waiver needs the day until which it counts, as 2026-02-28. Nothing was changed."
        ) from error


def waive_posted(
    env: WorkerEnv, submission_id: str, posted: QueryDict, *, actor: str, reason: str, seen: int
) -> Submission:
    """Waive what the form of the review page has ``posted`` about ``submission_id``; see ``waive``.

    Its fields are ``waive``, ``until`` and ``owner``, which is ``actor`` where it is empty. ``reason`` and ``seen`` are
    passed on.
    """
    owner = reveal_hidden(posted.get("owner", "").replace("\0", "").strip())[:_LONGEST_OWNER] or actor
    until = until_end_of(posted.get("until", "").strip())
    chosen = posted.getlist("waive")
    return waive(env, submission_id, chosen, until=until, owner=owner, actor=actor, reason=reason, seen=seen)


def waive(
    env: WorkerEnv,
    submission_id: str,
    fingerprints: Collection[str],
    *,
    until: datetime,
    owner: str,
    actor: str,
    reason: str,
    seen: int,
) -> Submission:
    """Waive the chosen findings of a held submission, or of one that is appealed, and check it again.

    ``fingerprints`` name the findings, ``owner`` answers for them, and ``actor`` and ``reason`` are kept with the
    waivers and in the history. ``seen`` is the version that the reviewer looked at. Raises ``InvalidWaiver`` where one
    is not a finding of this content, ``IllegalTransition`` where it is neither held nor appealed, ``VersionConflict``
    where somebody else was first, and ``NewerSubmission``.
    """
    with transaction.atomic(using=env.database):
        submission = read_seen(env, submission_id, seen)
        if submission.state is State.REJECTED:
            submission = hold_again(env, submission, actor)
        if submission.state is not State.ON_HOLD:
            raise IllegalTransition(
                f"Findings are waived of what is held; this is {submission.state}. It was left as it is."
            )
        files = read_held(env, submission_id, submission.text("contentHash"))
        known = {one.fingerprint: one for one in waivable(findings_of(all_evidence_sync(env, submission_id)), files)}
        if unknown := set(fingerprints) - set(known):
            raise InvalidWaiver(f"{len(unknown)} of the chosen findings are not of this content. Nothing was changed.")
        chosen = [known[one] for one in sorted(set(fingerprints))]
        left = set(stored_holding(env, submission_id)) - {one.finding for one in chosen}
        grant(
            env,
            submission.text("identity"),
            chosen,
            skill_name=submission.text("skillName"),
            submission_id=submission_id,
            until=until,
            owner=owner,
            actor=actor,
            reason=reason,
        )
        still = {(one.engine, one.rule_id) for one in left}
        accepted = {(one.finding.engine, one.finding.rule_id) for one in chosen}
        overturn_rules(env, submission_id, accepted - still)
        if changes := answered(submission, SignOutcome.OVERTURNED, actor=actor, words=reason):
            touch(env, submission, changes)
        let_expire(env, submission_id)
        said = f"{len(chosen)} finding{'s' if len(chosen) != 1 else ''} waived until {until:%Y-%m-%d}: {reason}"
        return requeue(env, submission_id, actor=actor, reason=said)
