"""Read submissions: by id, stuck ones, lists by indexed columns, history and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Final

from django.db import DatabaseError
from django.db.models import Q, QuerySet

from submissions.messages import on_its_way, queued_among
from submissions.models import SUBMISSION_PREFIX, SubmissionEntry, SubmissionTransition
from submissions.states import FINAL_STATES, LIVE_STATES, STUCK_STATES, SWEPT_STATES, State
from submissions.store.records import (
    StuckReport,
    StuckSubmission,
    Submission,
    SubmissionNotFound,
    no_such_submission,
    stuck_of,
    submission_of,
)
from submissions.store.transitions import (
    submission_key,
    submission_namespace,
)
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now
from vskill.kv.codec import is_storable
from vskill.kv.errors import InvalidKey
from vskill.kv.outcomes import Outcome, ReadCounts, Status
from vskill.kv.partial_index import InPartialIndex
from vskill.kv.threads import readers

Shown = Callable[[QuerySet[SubmissionEntry]], QuerySet[SubmissionEntry]]

INDEX_PAGE: Final = 50
WAITING_PATHS: Final = 50
_IDS_PER_QUERY: Final = 500


def every_one(rows: QuerySet[SubmissionEntry]) -> QuerySet[SubmissionEntry]:
    """Return ``rows`` as they are."""
    return rows


def read_submission(env: WorkerEnv, submission_id: str) -> Submission:
    """Return one submission, read on the calling thread; raise ``SubmissionNotFound``."""
    try:
        return submission_of(submission_namespace(env).get_sync(submission_key(submission_id)))
    except InvalidKey as error:
        raise no_such_submission(submission_id) from error


async def get_submission(env: WorkerEnv, submission_id: str) -> Submission:
    """Return one submission; raise ``SubmissionNotFound``."""
    try:
        return submission_of(await submission_namespace(env).get(submission_key(submission_id)))
    except InvalidKey as error:
        # The id may come from a URL, and can then be something that no key can be.
        raise no_such_submission(submission_id) from error


def waiting_paths(env: WorkerEnv, repo_url: str, limit: int = WAITING_PATHS) -> list[str]:
    """Return the folders of the ``limit`` oldest submissions of a repository that were accepted and not begun."""
    waiting = SubmissionEntry.objects.using(env.database).filter(
        namespace=env.name, repo_url=repo_url, state=State.RECEIVED
    )
    return list(waiting.order_by("submitted_at").values_list("skill_path", flat=True)[:limit])


def live_submission(env: WorkerEnv, identity: str) -> str | None:
    """Return the id of the submission of a skill that is on its way or held, or ``None``; there is one at most."""
    rows = SubmissionEntry.objects.using(env.database).live()
    entry = rows.filter(namespace=env.name, identity=identity, state__in=sorted(LIVE_STATES)).first()
    return entry.submission_id if entry is not None else None


def history(env: WorkerEnv, submission_id: str) -> list[SubmissionTransition]:
    """Return the steps of a submission, oldest first."""
    rows = SubmissionTransition.objects.using(env.database)
    return list(rows.filter(namespace=env.name, submission_id=submission_id).order_by("sequence"))


async def get_submissions_fresh(env: WorkerEnv, ids: Iterable[str]) -> tuple[list[Submission], ReadCounts]:
    """Read submissions by id, concurrently and past every cache.

    Returns those that exist, in the order asked, and how each read ended: a malformed or missing one is counted, not
    raised.
    """
    found: list[Submission] = []
    statuses: list[Status] = []
    keys = (submission_key(submission_id) for submission_id in ids)
    async for outcome in submission_namespace(env).get_many(keys):
        status = outcome.status
        if outcome.found:
            try:
                found.append(submission_of(outcome))
            except SubmissionNotFound:
                status = Status.MALFORMED
        statuses.append(status)
    return found, ReadCounts.of(statuses)


def stuck_condition(
    env: WorkerEnv, now: datetime, *, older_than: timedelta, states: frozenset[State] = SWEPT_STATES
) -> Q:
    """Return what makes a row of a submission a stuck one, for the admin and for recovery alike.

    It is in one of ``states``, has not moved for ``older_than`` or longer before ``now``, and has no message that will
    be received. ``now`` is a time of the database's clock.
    """
    return Q(state__in=sorted(states)) & _old(now, older_than) & ~Q(on_its_way(env))


def _old(now: datetime, older_than: timedelta) -> Q:
    return Q(state_at__lte=now - older_than)


@dataclass(frozen=True)
class _Candidates:
    """The keys to read, those among them whose message waits, and how many more wait and are not read."""

    now: datetime
    keys: list[str]
    waiting: frozenset[str] = frozenset()
    unread: int = 0


def _stuck_candidates(
    env: WorkerEnv, moment: datetime | None, older_than: timedelta, states: frozenset[State], idle: bool
) -> _Candidates:
    now = moment or database_now(env.database)
    rows = SubmissionEntry.objects.using(env.database).live()
    rows = rows.filter(_old(now, older_than), namespace=env.name).order_by("state_at")
    parts = [rows.filter(state=state) for state in sorted(states - STUCK_STATES)]
    if stuck := states & STUCK_STATES:
        indexed = rows.filter(InPartialIndex(SubmissionEntry, "submission_stuck"))
        parts.append(indexed if stuck == STUCK_STATES else indexed.filter(state__in=sorted(stuck)))
    if not idle:
        return _Candidates(now, _keys(parts))
    waiting = [part.filter(on_its_way(env)) for part in parts]
    damaged = _damaged(waiting)
    keys = _keys([part.filter(~on_its_way(env)) for part in parts])
    unread = max(0, sum(part.count() for part in waiting) - len(damaged))
    return _Candidates(now, [*keys, *damaged], frozenset(damaged), unread)


def _damaged(parts: Sequence[QuerySet[SubmissionEntry]]) -> list[str]:
    """Return the keys of the rows that have to be read to learn what is wrong with them."""
    try:
        # By the first and the last character, so that no value leaves the database.
        return _keys([part.exclude(value__startswith="{", value__endswith="}") for part in parts])
    except DatabaseError:
        # One value that the database cannot give out fails the whole statement, while reads by key settle alone.
        return _keys(parts)


def _keys(parts: Sequence[QuerySet[SubmissionEntry]]) -> list[str]:
    return [key for part in parts for key in part.values_list("key", flat=True)]


async def get_stuck_submissions(
    env: WorkerEnv,
    *,
    older_than: timedelta,
    states: frozenset[State] = STUCK_STATES,
    using: str = "index",
    now: datetime | None = None,
    idle: bool = False,
) -> StuckReport:
    """Find the submissions in one of ``states`` that have not moved for ``older_than`` or longer.

    ``now`` is the present by default, by the database's clock. ``using="scan"`` reads every ``sub:*`` entry, while
    ``"index"`` asks the partial index and reads the candidates. Both read concurrently and find the same submissions; a
    read that fails is counted and raises nothing. A malformed entry is counted by the scan alone, because it is in no
    index.

    With ``idle``, those whose message waits, is delayed or is leased are counted as ``on_its_way`` and left out. The
    index leaves them out unread, except those that are cut off or that the database cannot give out: they are read, and
    counted as what they are.
    """
    namespace = submission_namespace(env)
    if using == "scan":
        moment = await readers.run(database_now, env.database) if now is None else now
        search = _StuckSearch(moment, older_than, states)
        async for outcomes in namespace.scan(SUBMISSION_PREFIX):
            search.add(outcomes)
        if idle:
            await readers.run(search.leave_out_waiting, env)
        return search.report()
    found = await readers.run(_stuck_candidates, env, now, older_than, states, idle)
    search = _StuckSearch(found.now, older_than, states)
    search.add([outcome async for outcome in namespace.get_many(found.keys)])
    search.leave_out(found.waiting, unread=found.unread)
    return search.report()


class _StuckSearch:
    def __init__(self, now: datetime, older_than: timedelta, states: frozenset[State]) -> None:
        self._asked = (now, older_than, states)
        self._on_its_way = 0
        self._stuck: list[StuckSubmission] = []
        self._statuses: Counter[Status] = Counter()
        self._unreadable: list[str] = []

    def add(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            status = outcome.status
            if status is Status.VALUE:
                try:
                    found = stuck_of(outcome, *self._asked)
                except ValueError:
                    status = Status.MALFORMED
                else:
                    if found is not None:
                        self._stuck.append(found)
            if status in (Status.MALFORMED, Status.UNREADABLE, Status.TIMED_OUT):
                self._unreadable.append(outcome.key)
            self._statuses[status] += 1

    def leave_out(self, keys: Collection[str], *, unread: int = 0) -> None:
        stays = [one for one in self._stuck if submission_key(one.id) not in keys]
        self._on_its_way += unread + len(self._stuck) - len(stays)
        self._stuck = stays

    def leave_out_waiting(self, env: WorkerEnv) -> None:
        ids = [one.id for one in self._stuck]
        for start in range(0, len(ids), _IDS_PER_QUERY):
            waiting = queued_among(env, ids[start : start + _IDS_PER_QUERY])
            self.leave_out({submission_key(one) for one in waiting})

    def report(self) -> StuckReport:
        self._stuck.sort(key=lambda one: (one.updated_at, one.id))
        return StuckReport(tuple(self._stuck), ReadCounts.of(self._statuses), tuple(self._unreadable), self._on_its_way)


def get_submission_index(
    env: WorkerEnv,
    *,
    states: Iterable[State] = (),
    repo_url: str = "",
    limit: int = INDEX_PAGE,
    oldest_first: bool = False,
    shown: Shown = every_one,
) -> list[SubmissionEntry]:
    """Return the newest submissions by indexed columns, or the oldest with ``oldest_first``, at most ``limit``.

    ``shown`` leaves those that are wanted, as the rule of what is shown to whom does. ``states`` and ``repo_url``
    narrow the list down; empty means any.
    """
    # A value that is no submission has no time in its columns.
    live = SubmissionEntry.objects.using(env.database).live()
    rows = shown(live.filter(namespace=env.name, submitted_at__isnull=False))
    if repo_url:
        # A text that no database can store is no address that was submitted, and PostgreSQL would raise an error.
        rows = rows.filter(repo_url=repo_url) if is_storable(repo_url) else rows.none()
    order = ("submitted_at", "id") if oldest_first else ("-submitted_at", "-id")
    rows = rows.order_by(*order)
    if not (wanted := sorted(states)):
        return [entry for entry in rows[:limit] if entry.state in State.__members__]
    # One query for each state, in the order of its index: for all states at once SQLite would read every submission.
    found = [entry for state in wanted for entry in rows.filter(state=state)[:limit]]
    found.sort(key=attrgetter("submitted_at", "pk"), reverse=not oldest_first)
    return found[:limit]


def recently_decided(env: WorkerEnv, *, limit: int = 10, shown: Shown = every_one) -> list[SubmissionEntry]:
    """Return the submissions that ended last, the latest first, at most ``limit``; ``shown`` leaves what is wanted."""
    steps = SubmissionTransition.objects.using(env.database).filter(
        namespace=env.name, to_state__in=sorted(FINAL_STATES)
    )
    ids = dict.fromkeys(steps.order_by("-id").values_list("submission_id", flat=True)[: 2 * limit])
    rows = shown(SubmissionEntry.objects.using(env.database).live().filter(namespace=env.name))
    found = {entry.submission_id: entry for entry in rows.filter(key__in=[submission_key(one) for one in ids])}
    # One that was queued again since then has ended before, but is not decided now.
    ended = [found[one] for one in ids if one in found and found[one].state in FINAL_STATES]
    return ended[:limit]
