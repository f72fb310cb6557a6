"""Find where the tables disagree with one another, and mend what can be mended without guessing.

Nothing here is needed in operation: each of these is a fault that some other software, a broken disk or a hand in the
database left behind. What is mended goes through the same functions as everything else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError, transaction
from django.db.models import Exists, OuterRef, Value
from django.db.models.functions import Concat

from marketplace.catalog import ALIAS_PREFIX, resolve_slug_sync
from marketplace.models import SkillEntry
from marketplace.skills.store import record_event, skill_namespace
from submissions.models import SUBMISSION_PREFIX, QueueMessage, SubmissionEntry
from submissions.pipeline.process import VERIFY
from submissions.recovery.damaged_entries import ACTOR, ReadCounter, damaged_entries, rewrite, salvage
from submissions.recovery.sweep import put_back
from submissions.states import ACTIVE_STATES
from submissions.store.holds import hold
from submissions.store.queries import read_submission
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.outcomes import Status
from vskill.kv.threads import readers, writers


class Kind(StrEnum):
    """What is wrong."""

    ORPHAN_MESSAGE = "orphan_message"
    NO_MESSAGE = "submission_without_message"
    DANGLING_ALIAS = "dangling_alias"
    PROJECTION = "projection_disagrees"
    MALFORMED = "malformed"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong; ``repaired`` says whether it was mended, ``detail`` what it is or why it was not."""

    kind: Kind
    subject: str
    detail: str
    repaired: bool = False


@dataclass
class StoreReport:
    """What was looked at and what was found in one environment."""

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
    """Look for everything in ``Kind`` in one environment, and mend what can be mended where ``repair`` says so."""
    report = StoreReport(env.name)
    # Values first: a submission whose value is mended may turn out to lack its message.
    async for problem, mend in _values(env, report):
        await _add(env, report, problem, mend if repair else None)
    for problem, mend in await readers.run(_messages, env):
        await _add(env, report, problem, mend if repair else None)
    for problem, mend in await readers.run(_aliases, env):
        await _add(env, report, problem, mend if repair else None)
    return report


Mend = Callable[[WorkerEnv], str]
"""Mend one problem in a transaction; returns why it could not be, empty where it was."""


async def _add(env: WorkerEnv, report: StoreReport, problem: Problem, mend: Mend | None) -> None:
    if mend is not None:
        try:
            reason = await writers.run(_in_transaction, env, mend)
        except (VskillError, DatabaseError, ObjectDoesNotExist) as error:
            # The last of them where it was deleted between the look at it and now.
            reason = str(error)
        detail = f"{problem.detail}; not mended: {reason}" if reason else problem.detail
        problem = replace(problem, detail=detail, repaired=not reason)
    report.problems.append(problem)


def _in_transaction(env: WorkerEnv, mend: Mend) -> str:
    with transaction.atomic(using=env.database):
        return mend(env)


async def _values(env: WorkerEnv, report: StoreReport) -> AsyncIterator[tuple[Problem, Mend]]:
    counter = ReadCounter()
    async for one in damaged_entries(env, counter):
        if one.status is None:
            problem = Problem(Kind.PROJECTION, one.key, f"columns that disagree with the value: {one.detail}")
            yield problem, partial(rewrite, damage=one)
        else:
            kind = Kind.MALFORMED if one.status is Status.MALFORMED else Kind.UNREADABLE
            yield Problem(kind, one.key, one.detail), partial(salvage, damage=one)
    report.read = counter.read


def _messages(env: WorkerEnv) -> list[tuple[Problem, Mend]]:
    entries = SubmissionEntry.objects.using(env.database).filter(namespace=env.name)
    messages = QueueMessage.objects.using(env.database).filter(environment=env.name, kind=VERIFY)
    # Each is one statement, so that a submission and its message are seen at the same moment.
    about = entries.filter(key=Concat(Value(SUBMISSION_PREFIX), OuterRef("subject")))
    orphans = messages.filter(~Exists(about)).order_by("id")
    found: list[tuple[Problem, Mend]] = [
        (
            Problem(Kind.ORPHAN_MESSAGE, message.subject, f"message {message.pk} is about no submission that is there"),
            partial(_delete_orphan, pk=message.pk),
        )
        for message in orphans
    ]
    live = messages.filter(parked_at__isnull=True)
    of_entry = live.annotate(about=Concat(Value(SUBMISSION_PREFIX), "subject")).filter(about=OuterRef("key"))
    lost = entries.live().filter(state__in=sorted(ACTIVE_STATES)).filter(~Exists(of_entry)).order_by("state_at")
    found += [
        (
            Problem(Kind.NO_MESSAGE, entry.submission_id, f"it is {entry.state} and has no message"),
            partial(_give_message, submission_id=entry.submission_id),
        )
        for entry in lost
    ]
    return found


def _delete_orphan(env: WorkerEnv, pk: int) -> str:
    about = SubmissionEntry.objects.using(env.database).filter(
        namespace=env.name, key=Concat(Value(SUBMISSION_PREFIX), OuterRef("subject"))
    )
    QueueMessage.objects.using(env.database).filter(~Exists(about), pk=pk).delete()
    return ""


def _give_message(env: WorkerEnv, submission_id: str) -> str:
    submission = read_submission(env, submission_id)
    messages = QueueMessage.objects.using(env.database).filter(environment=env.name, kind=VERIFY, subject=submission_id)
    if submission.state not in ACTIVE_STATES or messages.filter(parked_at__isnull=True).exists():
        return ""
    parked = messages.order_by("-parked_at").first()
    if parked is not None:
        reason = f"the queue gave it up: {parked.last_error}"
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
