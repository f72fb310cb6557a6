"""Which submissions are shown to whoever asks: those of skills that they may not know of are not there.

The rule is that of ``marketplace.skills.visibility``. A submission belongs to the skill with its identity, and to the
one that it published, which may lie in another folder by now. One that published nothing belongs to each skill that
was in its folder, was to move there or had its content there (``marketplace.skills.places``). Those of a repository
that policy shows to some are not there for all others, whether anything of it is published or not. One that was
submitted for some is not there for all others, unless it published something that they may know of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from django.db import connections
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Substr
from django.db.models.lookups import IsNull

from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.places import places_with
from marketplace.skills.publishers import skill_identity
from marketplace.skills.visibility import any_hidden, hidden_skills, known_skills
from submissions.discovered import DiscoveredSkill
from submissions.models import SUBMISSION_PREFIX, SubmissionEntry
from submissions.source_audiences import unseen_rows
from submissions.states import LIVE_STATES
from submissions.store.queries import read_submission
from submissions.store.records import Submission, no_such_submission
from submissions.store.transitions import submission_key
from vskill.accounts.audiences import seeing
from vskill.environments import WorkerEnv

_AT_ONCE = 500
_SUBMISSIONS = f'"{SubmissionEntry._meta.db_table}"'


def shown_submissions(env: WorkerEnv, rows: QuerySet[SubmissionEntry]) -> QuerySet[SubmissionEntry]:
    """Return those of ``rows`` that are shown to whoever asks now; where nothing is hidden, it stays as it is."""
    unseen = unseen_rows(env)
    rows = rows if unseen is None else rows.exclude(unseen)
    skills = SkillEntry.objects.using(env.database).filter(namespace=env.name)
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name)
    published = versions.filter(submission_id=Substr(OuterRef("key"), len(SUBMISSION_PREFIX) + 1))
    its_skill = skills.filter(pk=OuterRef("skill_id"))
    if _for_others(env):
        opened = _any(published.filter(_any(known_skills(its_skill))))
        rows = rows.filter(Q(audience__isnull=True) | Q(audience__in=seeing()) | Q(opened))
    if not any_hidden(env):
        return rows
    # Inside the condition over places, so that it is asked only where there is one.
    elsewhere = versions.filter(submission_id=Substr(OuterRef(OuterRef("key")), len(SUBMISSION_PREFIX) + 1))
    places = places_with(env, OuterRef("identity")).filter(_any(hidden_skills(its_skill)))
    return rows.filter(
        _none(hidden_skills(skills).filter(identity=OuterRef("identity")).exclude(identity="")),
        _none(published.filter(_any(hidden_skills(its_skill)))),
        _none(places.filter(_none(elsewhere.filter(_any(known_skills(its_skill)))))),
    )


def _none(rows: QuerySet[Any]) -> IsNull:
    """Return the condition that there are no such rows, which are looked for in an index for each row that is judged.

    As a value: for EXISTS and IN, PostgreSQL would read all versions into memory, and SQLite all hidden skills; where
    it could join them, SQLite would walk through all skills for each submission.
    """
    return IsNull(Subquery(rows.values("pk")[:1]), True)


def _any(rows: QuerySet[Any]) -> IsNull:
    return IsNull(Subquery(rows.values("pk")[:1]), False)


def hides_any(env: WorkerEnv) -> bool:
    """Return whether an environment may have submissions that are not shown to whoever asks now."""
    return any_hidden(env) or unseen_rows(env) is not None or bool(_for_others(env))


def _for_others(env: WorkerEnv) -> set[str]:
    """Return the audiences that submissions were made for and that whoever asks now does not belong to.

    It takes one statement, with a look-up of an index for each such audience.
    """
    first = (
        "SELECT audience FROM {} WHERE namespace = %(namespace)s AND audience IS NOT NULL {} ORDER BY audience LIMIT 1"
    )
    begin, following = (first.format(_SUBMISSIONS, behind) for behind in ("", "AND audience > word.found"))
    text = (
        f"WITH RECURSIVE word(found) AS (SELECT ({begin}) UNION ALL "  # noqa: S608 - a query of our own
        f"SELECT ({following}) FROM word WHERE word.found IS NOT NULL) "
        "SELECT found FROM word WHERE found IS NOT NULL"
    )
    with connections[env.database].cursor() as cursor:
        cursor.execute(text, {"namespace": env.name})
        return {str(found) for (found,) in cursor.fetchall()} - {*seeing()}


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

    It is the skill that is published from the folder, or from the one that the found skill continues, or the one that
    somebody has submitted from there for others.
    """
    skills_hidden, submissions_hidden = any_hidden(env), _for_others(env)
    if not skills_hidden and not submissions_hidden:
        return frozenset()
    folders: dict[str, set[str]] = {}
    for skill in skills:
        for path in (skill.path, skill.path if skill.continues is None else skill.continues):
            folders.setdefault(skill_identity(repo_url, path), set()).add(skill.path)
    wanted, found = sorted(folders), set[str]()
    for start in range(0, len(wanted), _AT_ONCE):
        some = {"namespace": env.name, "identity__in": wanted[start : start + _AT_ONCE]}
        hidden = hidden_skills(SkillEntry.objects.using(env.database).filter(**some))
        identities = set(hidden.values_list("identity", flat=True)) if skills_hidden else set()
        if submissions_hidden:
            live = SubmissionEntry.objects.using(env.database).filter(**some, state__in=sorted(LIVE_STATES))
            identities |= set(live.filter(audience__in=submissions_hidden).values_list("identity", flat=True))
        for identity in identities:
            found |= folders[identity]
    return frozenset(found)
