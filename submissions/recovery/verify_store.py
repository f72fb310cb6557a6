"""Find where tables disagree with one another, and repair what can be repaired without guessing.

Normal operation never needs this: each problem was left by other software, a broken disk or a manual change. Repairs go
through the same functions as everything else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError, transaction

from marketplace.catalog import ALIAS_PREFIX, resolve_slug_sync
from marketplace.models import SkillEntry
from marketplace.search.engines import engine_of
from marketplace.skills.count_check import mend_counts, wrong_counts
from marketplace.skills.scan_history import note_missing, unnoted_scans
from marketplace.skills.search_check import mend_documents, wrong_documents
from marketplace.skills.store import record_event, skill_namespace
from submissions import messages
from submissions.recovery.damaged_entries import ACTOR, TABLES, ReadCounter, damaged_entries, rewrite, salvage
from submissions.recovery.database_checks import database_faults
from submissions.recovery.listing_checks import capability_problems, facet_problems
from submissions.recovery.problems import Kind, Look, Mend, Mends, Problem
from submissions.recovery.provenance_checks import log_problems, unsigned_problems
from submissions.recovery.sweep import GIVEN_UP_BY_QUEUE, put_back
from submissions.states import ACTIVE_STATES
from submissions.store.evidence import orphan_evidence
from submissions.store.holds import hold
from submissions.store.queries import read_submission
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.models import AbstractKVEntry, KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Status
from vskill.kv.threads import readers, writers


@dataclass
class StoreReport:
    """How many entries of one environment were read, and the problems that were found."""

    environment: str
    read: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def left(self) -> list[Problem]:
        """Return what is still wrong."""
        return [problem for problem in self.problems if not problem.repaired]

    def as_json(self) -> dict[str, Any]:
        """Return what ``verify_store --json`` prints for this environment."""
        return {
            "environment": self.environment,
            "read": self.read,
            "found": {kind: sum(one.kind is kind for one in self.problems) for kind in Kind},
            "repaired": len(self.problems) - len(self.left),
            "left": len(self.left),
            "problems": [
                {"kind": one.kind, "subject": one.subject, "detail": one.detail, "repaired": one.repaired}
                for one in self.problems
            ],
        }


async def verify_store(env: WorkerEnv, *, repair: bool = False) -> StoreReport:
    """Look for every ``Kind`` of problem in one environment, repair what can be repaired if ``repair``, and report."""
    report = StoreReport(env.name)
    for subject, detail in await readers.run(database_faults, env):
        report.problems.append(Problem(Kind.DATABASE, subject, f"{detail}; restore it from a backup"))
    # Values first: a submission whose value is repaired may turn out to lack its message.
    for model in TABLES:
        try:
            async for problem, mend in _values(env, model, report):
                await _add(env, report, problem, mend if repair else None)
        except DatabaseError as error:
            report.problems.append(_unreadable(model._meta.db_table, error))
    for name, look in _LOOKS.items():
        try:
            found = await readers.run(look, env)
        except DatabaseError as error:
            report.problems.append(_unreadable(name, error))
            continue
        for problem, mends in found:
            await _add(env, report, problem, mends if repair else None)
    return report


def _unreadable(subject: str, error: DatabaseError) -> Problem:
    return Problem(Kind.UNREADABLE, subject, f"the rest of it could not be looked at: {error}")


async def _add(env: WorkerEnv, report: StoreReport, problem: Problem, mends: Mends | None) -> None:
    if mends is not None:
        parts = [mends] if callable(mends) else mends
        reasons = [reason for mend in parts if (reason := await _mended(env, mend))]
        left = f"{len(reasons)} of {len(parts)}, such as: " if len(parts) > 1 else ""
        detail = f"{problem.detail}; not mended: {left}{reasons[0]}" if reasons else problem.detail
        problem = replace(problem, detail=detail, repaired=not reasons)
    report.problems.append(problem)


async def _mended(env: WorkerEnv, mend: Mend) -> str:
    """Return why something was not mended, empty where it was."""
    try:
        return await writers.run(_in_transaction, env, mend)
    except (VskillError, DatabaseError, ObjectDoesNotExist) as error:
        # ObjectDoesNotExist: the row was deleted since it was looked at.
        return str(error)


def _in_transaction(env: WorkerEnv, mend: Mend) -> str:
    with transaction.atomic(using=env.database):
        return mend(env)


async def _values(
    env: WorkerEnv, model: type[AbstractKVEntry], report: StoreReport
) -> AsyncIterator[tuple[Problem, Mend]]:
    counter = ReadCounter(report.read)
    async for one in damaged_entries(env, model, counter):
        report.read = counter.read
        if one.status is None:
            problem = Problem(Kind.PROJECTION, one.key, f"columns that disagree with the value: {one.detail}")
            yield problem, partial(rewrite, damage=one)
        else:
            kind = Kind.MALFORMED if one.status is Status.MALFORMED else Kind.UNREADABLE
            yield Problem(kind, one.key, one.detail), partial(salvage, damage=one)
    report.read = counter.read


def _evidence(env: WorkerEnv) -> list[tuple[Problem, Mend]]:
    return [
        (Problem(Kind.ORPHAN_EVIDENCE, key, "it is about no submission that is there"), partial(_forget, key=key))
        for key in orphan_evidence(env)
    ]


def _forget(env: WorkerEnv, key: str) -> str:
    if key in orphan_evidence(env, key):
        KVNamespace(KVEntry, env).delete_sync(key)
    return ""


def _messages(env: WorkerEnv) -> list[tuple[Problem, Mend]]:
    found: list[tuple[Problem, Mend]] = [
        (
            Problem(Kind.ORPHAN_MESSAGE, orphan.subject, f"message {orphan.id} is about no submission that is there"),
            partial(_delete_orphan, orphan_id=orphan.id),
        )
        for orphan in messages.orphans(env)
    ]
    found += [
        (
            Problem(Kind.NO_MESSAGE, entry.submission_id, f"it is {entry.state} and has no message"),
            partial(_queue_again, submission_id=entry.submission_id),
        )
        for entry in messages.without_message(env)
    ]
    return found


def _delete_orphan(env: WorkerEnv, orphan_id: int) -> str:
    messages.delete_orphan(env, orphan_id)
    return ""


def _queue_again(env: WorkerEnv, submission_id: str) -> str:
    submission = read_submission(env, submission_id)
    if submission.state not in ACTIVE_STATES or messages.is_queued(env, submission_id):
        return ""
    if (parked_reason := messages.parked_reason(env, submission_id)) is not None:
        reason = f"{GIVEN_UP_BY_QUEUE}: {parked_reason}"
        hold(env, submission, reason=reason, actor=ACTOR, trigger=ACTOR)
    else:
        put_back(env, submission, reason="it had lost its message", actor=ACTOR, trigger=ACTOR)
    return ""


def _aliases(env: WorkerEnv) -> list[tuple[Problem, Mend]]:
    rows = SkillEntry.objects.using(env.database).live().filter(namespace=env.name)
    keys = rows.filter(key__gte=ALIAS_PREFIX, key__lt=f"{ALIAS_PREFIX}\U0010ffff").order_by("key")
    slugs = [str(key).removeprefix(ALIAS_PREFIX) for key in keys.values_list("key", flat=True)]
    return [
        (
            Problem(Kind.DANGLING_ALIAS, slug, "the alias leads to no skill"),
            partial(_delete_alias, slug=slug),
        )
        for slug in slugs
        if resolve_slug_sync(env, slug) is None
    ]


def _delete_alias(env: WorkerEnv, slug: str) -> str:
    key = f"{ALIAS_PREFIX}{slug}"
    if resolve_slug_sync(env, slug) is None and skill_namespace(env).delete_sync(key):
        record_event(env, key, "alias removed", actor=ACTOR, reason="it led to no skill")
    return ""


def _counts(env: WorkerEnv) -> list[tuple[Problem, Mend]]:
    wrong = wrong_counts(env)
    if not wrong:
        return []
    within, kind, value, off = wrong[0]
    named = " ".join(part for part in (kind, value, f"of {within or 'all'}") if part)
    detail = f"{len(wrong)} of them are not what the skills come to, such as {named}, which is {off:+} off"
    return [(Problem(Kind.COUNTS, "counts of lists", detail), _recount)]


def _recount(env: WorkerEnv) -> str:
    mend_counts(env)
    return ""


def _search_index(env: WorkerEnv) -> list[tuple[Problem, Mend]]:
    fault = engine_of(env.database).fault()
    return [(Problem(Kind.SEARCH, "index of the search", fault), _build_index)] if fault else []


def _build_index(env: WorkerEnv) -> str:
    engine = engine_of(env.database)
    engine.rebuild()
    return engine.fault()


def _documents(env: WorkerEnv) -> list[tuple[Problem, Mend]]:
    wrong = wrong_documents(env)
    if not wrong:
        return []
    detail = f"{len(wrong)} skills are searched by something else than they say, or by nothing"
    return [(Problem(Kind.SEARCH, "documents of the search", detail), partial(_index_again, wrong=wrong))]


def _index_again(env: WorkerEnv, wrong: list[int]) -> str:
    mend_documents(env, wrong)
    return ""


def _scans(env: WorkerEnv) -> list[tuple[Problem, Mend]]:
    missing = unnoted_scans(env).count()
    if not missing:
        return []
    detail = f"{missing} later scans of versions are not in their history"
    return [(Problem(Kind.SCANS, "history of scans", detail), _note_scans)]


def _note_scans(env: WorkerEnv) -> str:
    while note_missing(env):
        pass
    return ""


_LOOKS: Final[dict[str, Look]] = {
    "messages of the queue": _messages,
    "aliases": _aliases,
    "evidence": _evidence,
    # Before the documents, which are written through it.
    "index of the search": _search_index,
    "documents of the search": _documents,
    "capabilities of skills": capability_problems,
    # After the capabilities, which are written with their facets.
    "facets of skills": facet_problems,
    "history of scans": _scans,
    "signatures": unsigned_problems,
    "log of verdicts": log_problems,
    # Last, because mending the others can change what is to be counted.
    "counts of lists": _counts,
}
