"""Compare the rows by which skills are filtered and counted with what the skills say, and mend them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import Final

from marketplace.errors import MalformedRecord
from marketplace.models import SkillEntry
from marketplace.models.derived import SkillFacet
from marketplace.skills.capability_renewal import lock_skill
from marketplace.skills.count_check import wrong_counts
from marketplace.skills.counts import AGENT, CAPABILITY, TAG, Facet, counted, facets_of
from marketplace.skills.store import renew_facets
from vskill.environments import WorkerEnv

_AT_ONCE: Final = 500


def wrong_facets(env: WorkerEnv) -> list[tuple[int, str]]:
    """Return the primary keys and the keys of the skills whose facets are not what their entries say.

    All skills are read, the rows of each by the statement that reads its entry: what is published meanwhile is in both
    or in neither. A former name that has facets is among them; a value that cannot be read is not.
    """
    skills = SkillEntry.objects.using(env.database).filter(namespace=env.name)
    numbers = list(skills.order_by("pk").values_list("pk", flat=True))
    wrong: list[tuple[int, str]] = []
    for start in range(0, len(numbers), _AT_ONCE):
        wrong += _wrong_among(env, numbers[start : start + _AT_ONCE])
    return wrong


def facets_not_counted(env: WorkerEnv) -> frozenset[Facet]:
    """Return the facets whose count is not the number of their rows: it knows of none that was lost or added.

    Every skill of the environment is read, by one statement.
    """
    wrong = wrong_counts(env)
    several = (TAG, CAPABILITY, AGENT)
    return frozenset((kind, value) for within, kind, value, _off in wrong if not within and kind in several)


def mend_facets(env: WorkerEnv, number: int, not_counted: Collection[Facet]) -> None:
    """Write the facets of the skill with a primary key, its filters and counts, in the caller's transaction.

    They are compared again first: one that was published meanwhile is left as it is. Each count is taken to know of the
    rows that were lost or added, by the comparison of every hour, unless its facet is ``not_counted``.
    """
    row = lock_skill(env, number)
    rows = SkillFacet.objects.using(env.database).filter(skill_id=number)
    held = set(rows.values_list("namespace", "kind", "value"))
    said = _said(row)
    if said is None or held == _rows(row, said):
        return
    changed = {(kind, value) for _namespace, kind, value in held} ^ set(said)
    record = None if row.is_alias else row.record
    renew_facets(env, row, record, counted(record, facets=set(said) ^ changed.difference(not_counted)))


def _wrong_among(env: WorkerEnv, numbers: list[int]) -> Iterator[tuple[int, str]]:
    rows = SkillEntry.objects.using(env.database).filter(pk__in=numbers).order_by("pk")
    columns = rows.values_list("pk", "key", "value", "facets__namespace", "facets__kind", "facets__value")
    for (number, key, value), group in groupby(columns, key=lambda one: one[:3]):
        row = SkillEntry(pk=number, namespace=env.name, key=key, value=value)
        # A skill without facets has one row, of nothing.
        held = {(namespace, kind, facet) for *_skill, namespace, kind, facet in group if kind is not None}
        said = _said(row)
        if said is not None and held != _rows(row, said):
            yield number, key


def _said(row: SkillEntry) -> list[Facet] | None:
    """Return the facets that a skill says it has, ``None`` where it cannot be read: ``verify_store`` tells of that."""
    if row.is_alias:
        return []
    try:
        return facets_of(row.record)
    except (MalformedRecord, ValueError):
        return None


def _rows(row: SkillEntry, said: Iterable[Facet]) -> set[tuple[str, str, str]]:
    return {(row.namespace, kind, value) for kind, value in said}
