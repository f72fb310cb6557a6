"""Names that are near to one that nothing has, so that a slip of the pen leads on; only what lists show is named.

Every look-up takes a few rows of an index: the neighbours of the name in the alphabet, which begin as it does, and
skills that have one of its words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

from django.db.models import QuerySet

from marketplace.models import SkillEntry
from marketplace.models.derived import SkillCount, SkillCountChange
from marketplace.search.engines import engine_of
from marketplace.search.text import query_terms
from marketplace.skills.count_reads import counts_of
from marketplace.skills.counts import PUBLISHER, Key
from marketplace.skills.visibility import listed_skills
from vskill.environments import WorkerEnv
from vskill.kv.codec import is_storable

MOST_NAMES: Final = 5
_NEIGHBOURS: Final = 12
_WORDS: Final = 4
_OF_A_WORD: Final = 25
_LONGEST_NAME: Final = 80
# Share of characters in common, as difflib counts it.
_LEAST_LIKENESS: Final = 0.6


def near_slugs(env: WorkerEnv, asked: str) -> list[str]:
    """Return the slugs of listed skills that are near to ``asked``, the nearest first, at most ``MOST_NAMES``."""
    name = asked.strip().lower()
    if not can_be_near(name):
        return []
    found = set(_neighbours(_listed(env), "slug", name))
    engine = engine_of(env.database)
    for word in query_terms(name.replace("-", " "))[:_WORDS]:
        having = engine.by_position(engine.matching(_listed(env), [[word]], in_names=True))
        found.update(having.values_list("slug", flat=True)[:_OF_A_WORD])
    return nearest(name, found)


def near_publishers(env: WorkerEnv, asked: str) -> list[str]:
    """Return the handles of publishers of listed skills that are near to ``asked``, the nearest first."""
    name = asked.strip().lower()
    if not can_be_near(name):
        return []
    # The counts have a row for each publisher, however many skills it has.
    keys: list[Key] = []
    for model in (SkillCount, SkillCountChange):
        rows = model.objects.using(env.database).filter(namespace=env.name, within="", kind=PUBLISHER)
        keys += [("", PUBLISHER, str(value)) for value in _neighbours(rows, "value", name)]
    present = [value for (_within, _kind, value), count in counts_of(env, list(dict.fromkeys(keys))).items() if count]
    return nearest(name, present)


def near_values(rows: QuerySet[Any], column: str, asked: str) -> list[str]:
    """Return the values of an indexed ``column`` of ``rows`` that are near to ``asked``, the nearest first."""
    name = asked.strip().lower()
    return nearest(name, set(_neighbours(rows, column, name))) if can_be_near(name) else []


def with_near(sentence: str, near: Sequence[str]) -> str:
    """Return a ``sentence``, which has no full stop, about a name that nothing has, with those that are near to it."""
    return f"{sentence}. Near names: {', '.join(near)}" if near else sentence


def _listed(env: WorkerEnv) -> QuerySet[SkillEntry]:
    return listed_skills(SkillEntry.objects.using(env.database).filter(namespace=env.name))


def can_be_near(name: str) -> bool:
    """Return whether a text is long enough, and short enough, for something to be near to it."""
    return 1 < len(name) <= _LONGEST_NAME and is_storable(name)


def _neighbours(rows: QuerySet[Any], column: str, name: str) -> Iterator[Any]:
    """Yield the values of a column that follow and precede ``name`` in the order of its index."""
    for comparison, order in (("gte", column), ("lt", f"-{column}")):
        following = rows.filter(**{f"{column}__{comparison}": name}).order_by(order)
        yield from following.values_list(column, flat=True)[:_NEIGHBOURS]


def nearest(name: str, found: Iterable[str]) -> list[str]:
    """Return those of the names ``found`` that are near to ``name``, the nearest first, at most ``MOST_NAMES``."""
    rated = sorted((-_likeness(name, one), one) for one in found)
    return [one for likeness, one in rated if -likeness >= _LEAST_LIKENESS][:MOST_NAMES]


def _likeness(asked: str, name: str) -> float:
    # What is the beginning of a name, or the name without an ending, is near however long the rest is.
    if name.startswith(f"{asked}-") or asked.startswith(f"{name}-"):
        return 0.9
    return SequenceMatcher(None, asked, name, autojunk=False).ratio()
