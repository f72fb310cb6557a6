"""How far a job is: what became of its skills, and where their submissions stand now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from submissions.chosen_audiences import audience_of_others
from submissions.intake import Outcome
from submissions.jobs.records import Job, JobSkill, jobs_of, no_such_job, skills_of, slice_key
from submissions.models import SubmissionEntry
from submissions.source_audiences import is_unseen
from submissions.states import STATES, Group, State
from submissions.store.shown import hidden_among, hidden_folders
from submissions.store.transitions import submission_key
from vskill.accounts.audiences import PUBLIC, seeing
from vskill.environments import WorkerEnv
from vskill.visitors.reads import list_reads

PAGE: Final = 50
_KEYS: Final = 500
# What a skill without a submission is shown under.
_WITHOUT: Final = {"": "waiting"}
_OTHERS: Final = ("shown_to_others", "withdrawn", "failed", "stopped")
# What skills of a job can be counted as.
STANDINGS: Final = ("waiting", *map(str, Group), "invalid", "internal", "reserved", *_OTHERS)


@dataclass(frozen=True)
class JobLine:
    """A skill of a job, its state where it has a submission, and ``standing``: what it is counted as."""

    skill: JobSkill
    state: State | None
    standing: str


@dataclass(frozen=True)
class Progress:
    """How far a job is: the lines of one page, and counts over all its skills.

    ``handled`` is the number of skills whose turn it was. ``outcomes`` counts what the intake answered, ``standings``
    where each skill is now: a group of states, 'waiting' for its turn, or the outcome of one without a submission.
    ``following`` is where the next page starts among the lines that are shown now, and ``next_number`` the number of
    its first skill in the job, which stays while skills move on. ``finished`` says that nothing of it will move any
    more by itself.
    """

    lines: tuple[JobLine, ...]
    handled: int
    outcomes: dict[str, int]
    standings: dict[str, int]
    start: int
    following: int | None
    next_number: int | None
    finished: bool


async def progress_of(
    env: WorkerEnv, job: Job, *, standing: str = "", start: int = 0, number: int = 0, size: int = PAGE
) -> Progress:
    """Return how far a job is, with a page of ``size`` of its skills from number ``start`` (from 0).

    ``standing`` narrows the page down to the skills that are counted as that; '' is all of them. ``start`` counts
    those, from the skill that has this ``number`` in the job (from 0) on. Raises ``JobNotFound`` where one of its
    skills may not be known of by whoever asks now.
    """
    keys = [slice_key(job.id, place) for place in range(job.slices)]
    slices = [outcome async for outcome in jobs_of(env).get_many(keys)]

    def work() -> Progress:
        skills = [one for outcome in slices for one in skills_of(outcome)]
        return _progress(env, job, skills, standing, start, number, size)

    return await list_reads.run(work)


def _progress(
    env: WorkerEnv, job: Job, skills: Sequence[JobSkill], standing: str, start: int, number: int, size: int
) -> Progress:
    if (
        _is_for_others(env, job)
        or is_unseen(env, job.repo_url)
        or hidden_among(env, [one.submission_id for one in skills if one.submission_id])
        # What has no submission says why.
        or hidden_folders(env, job.repo_url, [one.skill for one in skills])
    ):
        raise no_such_job(job.id)
    states = _states(env, [one.submission_id for one in skills if one.submission_id])
    lines = [_line(one, states.get(one.submission_id)) for one in skills]
    numbers = [place for place, line in enumerate(lines) if place >= number and standing in ("", line.standing)]
    start = max(0, min(start, len(numbers)))
    standings = Counter(line.standing for line in lines)
    return Progress(
        tuple(lines[place] for place in numbers[start : start + size]),
        sum(1 for one in skills if one.outcome),
        dict(Counter(one.outcome for one in skills if one.outcome)),
        dict(standings),
        start,
        start + size if start + size < len(numbers) else None,
        numbers[start + size] if start + size < len(numbers) else None,
        not (standings[_WITHOUT[""]] or standings[Group.ACTIVE]),
    )


def _is_for_others(env: WorkerEnv, job: Job) -> bool:
    audience = audience_of_others(env, job.repo_url, ()) if job.audience is None else job.audience
    return audience not in (PUBLIC, *seeing())


def _line(one: JobSkill, state: State | None) -> JobLine:
    if state is not None:
        return JobLine(one, state, str(STATES[state].group))
    standing = _WITHOUT.get(one.outcome, one.outcome)
    return JobLine(one, None, standing)


def _states(env: WorkerEnv, ids: Sequence[str]) -> dict[str, State]:
    """Return the present state of each submission that can be read."""
    found: dict[str, State] = {}
    rows = SubmissionEntry.objects.using(env.database).live().filter(namespace=env.name, state__in=sorted(State))
    for start in range(0, len(ids), _KEYS):
        keys = [submission_key(one) for one in ids[start : start + _KEYS]]
        for entry in rows.filter(key__in=keys).only("key", "state"):
            found[entry.submission_id] = State(entry.state)
    return found


def known_before(progress: Progress) -> int:
    """Return how many skills had a submission before the job."""
    return sum(progress.outcomes.get(one, 0) for one in (Outcome.DUPLICATE, Outcome.ALREADY_VERIFIED))
