"""Choose which published versions are scanned again next: the most downloaded and the newest, in turn.

Two walks go over what is published: over skills by their downloads, of which each latest version counts, and over all
versions from the newest to the oldest, which misses none. Each follows an index from where it stopped, and passes over
what has the current key. So a choice costs the rows that it reads, whatever is published.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Any, Final

from django.db.models import F, Q, QuerySet

from marketplace.catalog import listed_skills
from marketplace.models import SkillEntry, SkillVersion
from vskill.environments import WorkerEnv

# Rows that one walk reads at most in one run; more than a run has to send.
MOST_READ: Final = 5000
_CHUNK: Final = 500


@dataclass(frozen=True)
class Walks:
    """Where both walks are: behind the skill with these ``downloads`` and number, and behind the version ``before``.

    ``None`` is the beginning. ``most_used_ended`` and ``newest_ended`` say that a walk has come to its end.
    """

    downloads: int | None = None
    skill: int | None = None
    before: int | None = None
    most_used_ended: bool = False
    newest_ended: bool = False

    @property
    def ended(self) -> bool:
        """Return whether both walks have come to their ends."""
        return self.most_used_ended and self.newest_ended

    def to_value(self) -> dict[str, Any]:
        """Return plain values for an entry; ``from_value`` reads them back."""
        return {
            "downloads": self.downloads,
            "skill": self.skill,
            "before": self.before,
            "mostUsedEnded": self.most_used_ended,
            "newestEnded": self.newest_ended,
        }

    @classmethod
    def from_value(cls, value: Any) -> Walks:
        """Return the walks in a value; those that begin for any other value."""
        if not isinstance(value, dict):
            return cls()
        numbers = {name: value.get(name) for name in ("downloads", "skill", "before")}
        if not all(number is None or isinstance(number, int) for number in numbers.values()):
            return cls()
        ended = (value.get("mostUsedEnded") is True, value.get("newestEnded") is True)
        return cls(**numbers, most_used_ended=ended[0], newest_ended=ended[1])


def left_to_scan(env: WorkerEnv, key: str) -> QuerySet[SkillVersion]:
    """Return the versions whose last scan has another key, in a form that an index answers."""
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name)
    return versions.filter(Q(scan_key__lt=key) | Q(scan_key__gt=key))


def choose(
    env: WorkerEnv, key: str, walks: Walks, limit: int, *, without: Collection[int] = ()
) -> tuple[list[int], Walks]:
    """Return the numbers of at most ``limit`` versions that are next, each once, and where the walks are then.

    They are fewer, or none, where ``MOST_READ`` rows had the current ``key`` already. Those that wait in the queue,
    ``without``, are passed over.
    """
    found: dict[int, None] = {}
    used, newest = _most_used(env, key, walks), _newest(env, key, walks)
    steps = chain.from_iterable(zip_longest(used, newest)) if limit > 0 else ()
    for step in steps:
        if step is None:
            continue
        number, changes = step
        walks = replace(walks, **changes)
        if number is not None and number not in without:
            found[number] = None
        if len(found) >= limit:
            break
    return list(found), walks


_Step = tuple[int | None, dict[str, Any]]
"""The number of a version that has to be scanned, if it has, and what changes in the walks."""


def _most_used(env: WorkerEnv, key: str, walks: Walks) -> Iterator[_Step]:
    skills = listed_skills(SkillEntry.objects.using(env.database).filter(namespace=env.name))
    skills = skills.order_by("-downloads", "-id")
    downloads, skill, read = walks.downloads, walks.skill, 0
    while not walks.most_used_ended and read < MOST_READ:
        rows = _behind(skills, downloads, skill)
        latest = _latest(env, [pk for pk, _ in rows])
        for pk, count in rows:
            # Downloads may grow while the walk goes on; who overtakes it is met by the other walk.
            downloads, skill = count, pk
            number, scan_key = latest.get(pk, (None, key))
            yield (number if scan_key != key else None), {"downloads": downloads, "skill": skill}
        read += len(rows)
        if len(rows) < _CHUNK:
            yield None, {"most_used_ended": True}
            return


def _behind(skills: QuerySet[SkillEntry], downloads: int | None, skill: int | None) -> list[tuple[int, int]]:
    if downloads is None:
        return list(skills.values_list("pk", "downloads")[:_CHUNK])
    # A query for each part of what follows, so that each follows the index.
    equal = list(skills.filter(downloads=downloads, pk__lt=skill).values_list("pk", "downloads")[:_CHUNK])
    fewer = skills.filter(downloads__lt=downloads).values_list("pk", "downloads")[: _CHUNK - len(equal)]
    return [*equal, *fewer]


def _latest(env: WorkerEnv, skills: list[int]) -> dict[int, tuple[int | None, str]]:
    """Return the number and the key of the latest version of each of some skills."""
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name, skill_id__in=skills)
    rows = versions.filter(version=F("skill__latest_version")).values_list("skill_id", "pk", "scan_key")
    return {skill: (pk, scan_key) for skill, pk, scan_key in rows}


def _newest(env: WorkerEnv, key: str, walks: Walks) -> Iterator[_Step]:
    # Of all environments of the database, because the primary key is the one index in this order.
    versions = SkillVersion.objects.using(env.database).order_by("-pk")
    before, read = walks.before, 0
    while not walks.newest_ended and read < MOST_READ:
        behind = versions if before is None else versions.filter(pk__lt=before)
        rows = list(behind.values_list("pk", "namespace", "scan_key")[:_CHUNK])
        for pk, namespace, scan_key in rows:
            before = pk
            due = namespace == env.name and scan_key != key
            yield (pk if due else None), {"before": pk}
        read += len(rows)
        if len(rows) < _CHUNK:
            yield None, {"newest_ended": True}
            return
