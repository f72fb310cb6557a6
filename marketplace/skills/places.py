"""Places of a skill: the identities of all folders that it is, was or will be published from, or that held its content.

What was submitted from such a folder is about that skill, wherever it is now.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import QuerySet

from marketplace.models import SkillEntry
from marketplace.models.ownership import SkillPlace
from marketplace.records import SkillRecord
from marketplace.skills.publishers import skill_identity
from vskill.environments import WorkerEnv


def places_with(env: WorkerEnv, identity: object) -> QuerySet[SkillPlace]:
    """Return the places with an ``identity``, a text or an expression, of the skills of an environment."""
    return SkillPlace.objects.using(env.database).filter(identity=identity)


def note_place(env: WorkerEnv, row: SkillEntry, identities: Iterable[str]) -> None:
    """Write that the skill in ``row`` has places with these identities beside its present one."""
    places = [SkillPlace(namespace=env.name, identity=one, skill_id=row.pk) for one in sorted(set(identities)) if one]
    SkillPlace.objects.using(env.database).bulk_create(places, ignore_conflicts=True)


def note_changed_places(env: WorkerEnv, row: SkillEntry, before: SkillRecord | None, record: SkillRecord) -> None:
    """Write the places that the skill in ``row`` leaves or gets as its record becomes ``record``; free without any.

    ``before`` is the record until now, ``None`` for a new skill.
    """
    old = set() if before is None else _places(before)
    if changed := (old ^ _places(record)) - {record.identity}:
        note_place(env, row, changed)


def _places(record: SkillRecord) -> set[str]:
    return {record.identity, *(skill_identity(record.repo_url, path) for path in record.also_at)}
