"""What whoever submits is told: of a skill that they may not know of, neither its name nor what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from marketplace.models import SkillEntry
from marketplace.skills.visibility import any_hidden, hidden_skills
from submissions.discovered import DiscoveredSkill, Discovery
from submissions.intake import Accepted, Outcome
from submissions.listings import no_such_listing, read_listing
from submissions.source_audiences import is_unseen
from submissions.store.shown import hidden_among, hidden_folders, hides_any
from vskill.environments import WorkerEnv
from vskill.visitors.reads import page_reads

NOT_TOLD = "This registry says no more about it here."


async def told_listing(env: WorkerEnv, listing_id: str) -> Discovery:
    """Return a list of skills that was made before; raise ``ListingExpired`` also where it is not for whoever asks."""
    found = await read_listing(env, listing_id)
    if await page_reads.run(is_unseen, env, found.repo_url):
        raise no_such_listing()
    return found


def told_skills(env: WorkerEnv, skills: Sequence[DiscoveredSkill]) -> list[DiscoveredSkill]:
    """Return found skills without the names that are those of skills which whoever asks now may not know of."""
    if not any_hidden(env):
        return list(skills)
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name, slug__in={one.slug for one in skills})
    hidden = set(hidden_skills(rows).values_list("slug", flat=True))
    return [
        replace(one, slug="", notes=(), continues=None) if one.slug and one.slug in hidden else one for one in skills
    ]


def told_answers(env: WorkerEnv, repo_url: str, answers: Iterable[Accepted]) -> list[Accepted]:
    """Return the answers for skills of a repository as they may be told to whoever asks now.

    Of a skill that they may not know of it is the same one, whatever became of it.
    """
    given = list(answers)
    if not hides_any(env):
        return given
    submissions = hidden_among(env, [one.submission.id for one in given if one.submission is not None])
    folders = hidden_folders(env, repo_url, [one.skill for one in given])
    return [
        Accepted(replace(one.skill, slug="", notes=(), continues=None), Outcome.NOT_TOLD, None, NOT_TOLD)
        if (one.submission is not None and one.submission.id in submissions) or one.skill.path in folders
        else one
        for one in given
    ]
