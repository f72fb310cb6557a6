"""Which submissions are shown to whoever asks: those of skills that they may not know of are not there.

The rule is that of ``marketplace.skills.visibility``. A submission belongs to the skill with its identity, and to the
one that it published, which may lie in another folder by now. One that published nothing belongs to each skill that
was in its folder, was to move there or had its content there (``marketplace.skills.places``). Those of a repository
that policy shows to some are not there for all others, whether anything of it is published or not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.db.models.functions import Substr
from django.db.models.lookups import IsNull

from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.places import at_places
from marketplace.skills.publishers import skill_identity
from marketplace.skills.visibility import any_hidden, hidden_skills, known_skills
from submissions.discovered import DiscoveredSkill
from submissions.models import SUBMISSION_PREFIX, SubmissionEntry
from submissions.source_audiences import unseen_rows
from submissions.store.queries import read_submission
from submissions.store.records import Submission, no_such_submission
from submissions.store.transitions import submission_key
from vskill.environments import WorkerEnv

_AT_ONCE = 500


def shown_submissions(env: WorkerEnv, rows: QuerySet[SubmissionEntry]) -> QuerySet[SubmissionEntry]:
    """Return those of ``rows`` that are shown to whoever asks now; where nothing is hidden, it stays as it is."""
    unseen = unseen_rows(env)
    rows = rows if unseen is None else rows.exclude(unseen)
    if not any_hidden(env):
        return rows
    skills = SkillEntry.objects.using(env.database).filter(namespace=env.name)
    hidden = hidden_skills(skills)
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name)
    published = versions.filter(submission_id=Substr(OuterRef("key"), len(SUBMISSION_PREFIX) + 1))
    # Inside the condition over places, so that it is asked only where there is one, and as a value: for an EXISTS here,
    # PostgreSQL would read all versions into memory.
    elsewhere = versions.filter(
        submission_id=Substr(OuterRef(OuterRef("key")), len(SUBMISSION_PREFIX) + 1), skill__in=known_skills(skills)
    ).values("pk")[:1]
    return rows.filter(
        ~Exists(hidden.filter(identity=OuterRef("identity")).exclude(identity="")),
        ~Exists(published.filter(skill__in=hidden)),
        ~Exists(at_places(hidden, OuterRef("identity")).filter(IsNull(Subquery(elsewhere), True))),
    )


def hides_any(env: WorkerEnv) -> bool:
    """Return whether an environment may have submissions that are not shown to whoever asks now."""
    return any_hidden(env) or unseen_rows(env) is not None


def read_shown(env: WorkerEnv, submission_id: str) -> Submission:
    """Return one submission, read on the calling thread; raise ``SubmissionNotFound`` also where it is not shown."""
    found = read_submission(env, submission_id)
    if hidden_among(env, [submission_id]):
        raise no_such_submission(submission_id)
    return found


def hidden_among(env: WorkerEnv, ids: Collection[str]) -> frozenset[str]:
    """Return the ids of the submissions among ``ids`` that are not shown to whoever asks now."""
    if not hides_any(env):
        return frozenset()
    shown: set[str] = set()
    wanted = sorted(ids)
    for start in range(0, len(wanted), _AT_ONCE):
        keys = [submission_key(one) for one in wanted[start : start + _AT_ONCE]]
        rows = SubmissionEntry.objects.using(env.database).filter(namespace=env.name, key__in=keys)
        shown.update(entry.submission_id for entry in shown_submissions(env, rows.only("key")))
    return frozenset(ids) - shown


def hidden_folders(env: WorkerEnv, repo_url: str, skills: Iterable[DiscoveredSkill]) -> frozenset[str]:
    """Return the folders among those of found ``skills`` of a repository whose skill is not shown to whoever asks now.

    It is the skill that is published from the folder, or from the one that the found skill continues.
    """
    if not any_hidden(env):
        return frozenset()
    folders: dict[str, set[str]] = {}
    for skill in skills:
        for path in (skill.path, skill.path if skill.continues is None else skill.continues):
            folders.setdefault(skill_identity(repo_url, path), set()).add(skill.path)
    wanted, found = sorted(folders), set[str]()
    for start in range(0, len(wanted), _AT_ONCE):
        rows = SkillEntry.objects.using(env.database).filter(
            namespace=env.name, identity__in=wanted[start : start + _AT_ONCE]
        )
        for identity in hidden_skills(rows).values_list("identity", flat=True):
            found |= folders[identity]
    return frozenset(found)
