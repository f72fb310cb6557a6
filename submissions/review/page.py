"""What the page of one held submission shows: its findings in context, by file, and what they are weighed with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from marketplace.pages.source_links import source_href
from submissions.models import HeldSubmission
from submissions.presentation import submission_path, timeline
from submissions.review.accuracy import RuleAccuracy, accuracies
from submissions.review.changes import changes_since_published
from submissions.review.lines import lines_around
from submissions.review.queue import count_left, following, previous, query_of
from submissions.review.related import owner_history, similar
from submissions.review.waive import waivable
from submissions.states import STATES
from submissions.store.evidence import all_evidence_sync, findings_of
from submissions.store.held_files import HeldFile, read_held
from submissions.store.queries import history, read_submission
from submissions.store.records import Submission
from submissions.store.signs import stored_holding
from submissions.verification.findings import Finding, FindingKind
from submissions.waivers.store import LONGEST, USUAL, waivers_of
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now

MOST_FINDINGS: Final = 100
_MOST_WAIVERS: Final = 50


def review_context(env: WorkerEnv, entry: HeldSubmission, chosen: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the review page of ``entry``; ``chosen`` are the filters of the queue."""
    submission = read_submission(env, entry.submission_id)
    evidence = all_evidence_sync(env, submission.id)
    found = [one for one in findings_of(evidence) if one.kind is not FindingKind.COVERAGE]
    files = read_held(env, submission.id, submission.text("contentHash"))
    decision = submission.value.get("decision")
    appeal = submission.value.get("appeal")
    today = database_now(env.database)
    after, before = following(env, entry, chosen), previous(env, entry, chosen)
    return {
        "entry": entry,
        "seen": submission.version,
        "state": STATES[submission.state].label,
        "decision": decision if isinstance(decision, dict) else {},
        "reason": submission.text("reason"),
        "groups": _groups(env, submission, found[:MOST_FINDINGS], files),
        "more_findings": max(0, len(found) - MOST_FINDINGS),
        "files_kept": files is not None,
        "source": source_href(submission.text("repoUrl"), submission.text("commitSha"), _folder(submission)),
        "commit": submission.text("commitSha"),
        "public_page": submission_path(submission.id),
        "changes": changes_since_published(env, submission, files),
        "owner": owner_history(env, submission),
        "similar": similar(env, submission),
        "steps": timeline(history(env, submission.id)),
        "waivers": waivers_of(env, submission.text("identity"), _MOST_WAIVERS),
        "waive_from": f"{today + timedelta(days=1):%Y-%m-%d}",
        "waive_until": f"{today + USUAL:%Y-%m-%d}",
        "waive_at_most": f"{today + LONGEST:%Y-%m-%d}",
        "appeal": appeal if isinstance(appeal, dict) else None,
        "left": count_left(env, chosen),
        "next_pk": after.pk if after is not None else None,
        "previous_pk": before.pk if before is not None else None,
        "query": query_of(chosen),
    }


def _folder(submission: Submission) -> str:
    path = submission.text("skillPath").strip("/")
    return f"{path}/" if path else ""


def _groups(
    env: WorkerEnv, submission: Submission, found: Sequence[Finding], files: Sequence[HeldFile] | None
) -> list[dict[str, Any]]:
    """Return the findings by file, files in the order of their most severe finding."""
    texts = {one.path: one.text for one in files or ()}
    rates = {(one.engine, one.rule_id): one for one in accuracies(env, sorted({one.rule_id for one in found}))}
    holding = set(stored_holding(env, submission.id))
    choices: dict[Finding, dict[str, str]] = {}
    for choice in waivable(found, files):
        choices.setdefault(choice.finding, {})[choice.scope] = choice.fingerprint
    by_file: dict[str, list[Finding]] = {}
    for one in found:
        by_file.setdefault(one.file, []).append(one)
    return [
        {
            "file": name,
            "source": _file_source(submission, name) if name else "",
            "findings": [
                {**_shown(one, texts.get(name), rates, holds=one in holding), "waivable": choices.get(one)}
                for one in findings
            ],
        }
        for name, findings in by_file.items()
    ]


def _file_source(submission: Submission, name: str) -> str:
    return source_href(submission.text("repoUrl"), submission.text("commitSha"), f"{_folder(submission)}{name}")


def _shown(
    finding: Finding, text: str | None, rates: Mapping[tuple[str, str], RuleAccuracy], *, holds: bool
) -> dict[str, Any]:
    known = rates.get((finding.engine, finding.rule_id))
    return {
        "finding": finding,
        "holds": holds,
        "lines": lines_around(text, finding.line) if text is not None and finding.line else [],
        "accuracy": known.words if known else "No decision yet about what this rule holds." if holds else "",
    }
