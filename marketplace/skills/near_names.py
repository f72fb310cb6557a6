"""Names that are near to one that nothing has, so that a slip of the pen leads on; only what lists show is named.

Every look-up takes a few rows of an index: the neighbours of the name in the alphabet, which begin as it does, and
skills that have its words. Words with a slip are taken for the ones that are near to them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import chain
from typing import Any, Final

from django.db.models import QuerySet

from marketplace.models import SkillEntry, SkillVersion
from marketplace.search.engines import engine_of
from marketplace.search.spelling import near_words
from marketplace.search.text import query_terms
from marketplace.skills.visibility import fetchable_versions, listed_skills
from vskill.environments import WorkerEnv
from vskill.kv.codec import is_storable

MOST_NAMES: Final = 5
_NEIGHBOURS: Final = 12
_WORDS: Final = 4
_OF_A_WORD: Final = 25
_LONGEST_NAME: Final = 80
_LONGEST_PATH: Final = 200
_VERSIONS: Final = 200
# Share of characters in common, as difflib counts it.
_LEAST_LIKENESS: Final = 0.6
_WORD: Final = re.compile(r"[^\W_]+")


def near_slugs(env: WorkerEnv, asked: str) -> list[str]:
    """Return the slugs of listed skills that are near to ``asked``, the nearest first, at most ``MOST_NAMES``."""
    name = asked.strip().lower()
    if not can_be_near(name):
        return []
    found = set(_neighbours(_listed(env), "slug", name))
    meant = meant_by(env, [name])[name]
    words = sorted(meant.values(), key=len, reverse=True)[:_WORDS]
    engine = engine_of(env.database)
    engine.expect(words)
    all_but_one = [words[:place] + words[place + 1 :] for place in range(len(words))] if len(words) > 2 else []
    for alternatives in ([words], all_but_one, *([[word]] for word in words if len(words) > 1)):
        # What has all words is looked for in any case: among many skills, neighbours alone are near enough.
        if len(near := nearest(name, found, meant)) == MOST_NAMES and alternatives != [words]:
            return near
        having = engine.by_position(engine.matching(_listed(env), alternatives, in_names=True))
        found.update(having.values_list("slug", flat=True)[:_OF_A_WORD])
    return nearest(name, found, meant)


def near_values(rows: QuerySet[Any], column: str, asked: str) -> list[str]:
    """Return the values of an indexed ``column`` of ``rows`` that are near to ``asked``, the nearest first."""
    name = asked.strip().lower()
    return nearest(name, set(_neighbours(rows, column, name))) if can_be_near(name) else []


def near_versions(env: WorkerEnv, skill: SkillEntry, asked: str) -> list[str]:
    """Return the versions of a ``skill``, of its newest ones that are not yanked, that are near to ``asked``."""
    if not can_be_near(asked):
        return []
    versions = SkillVersion.objects.using(env.database).filter(skill=skill, yanked_at__isnull=True)
    newest = fetchable_versions(versions).order_by("-ordinal").values_list("version", flat=True)[:_VERSIONS]
    return nearest(asked.removeprefix("v"), newest)


def near_paths(paths: Iterable[str], asked: str) -> list[str]:
    """Return those of ``paths`` that are near to ``asked``: of the same name in another folder, or of one like it."""
    if len(asked) > _LONGEST_PATH:
        return []
    wanted = asked.lower()
    rated = []
    for path in paths:
        held = path.lower()[:_LONGEST_PATH]
        name = wanted.rpartition("/")[2]
        likeness = 1.0 if name and held.rpartition("/")[2] == name else 0.0
        matcher = SequenceMatcher(None, held, wanted, autojunk=False)
        # The others are only above what is wanted.
        if not likeness and min(matcher.real_quick_ratio(), matcher.quick_ratio()) >= _LEAST_LIKENESS:
            likeness = matcher.ratio()
        rated.append((-likeness, path))
    return [path for likeness, path in sorted(rated) if -likeness >= _LEAST_LIKENESS][:MOST_NAMES]


def with_near(sentence: str, near: Sequence[str], *, what: str = "names") -> str:
    """Return a ``sentence``, which has no full stop, about a name that nothing has, with those that are near to it.

    ``what`` they are is said in the plural.
    """
    return f"{sentence}. Near {what}: {', '.join(near)}" if near else sentence


def _listed(env: WorkerEnv) -> QuerySet[SkillEntry]:
    return listed_skills(SkillEntry.objects.using(env.database).filter(namespace=env.name))


def can_be_near(name: str) -> bool:
    """Return whether a text is long enough, and short enough, for something to be near to it."""
    return 1 < len(name) <= _LONGEST_NAME and is_storable(name)


def meant_by(env: WorkerEnv, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return for each name its words, each with the one that it is taken for, by one statement.

    That is the word itself where a name has it or none is near.
    """
    words = {name: query_terms(name.replace("-", " ")) for name in names}
    near = near_words(env.database, env.name, list(dict.fromkeys(chain.from_iterable(words.values()))))
    taken = {word: word if one.in_names or not one.words else one.words[0].word for word, one in near.items()}
    return {name: {word: taken[word] for word in each} for name, each in words.items()}


def put_right(name: str, meant: Mapping[str, str]) -> str:
    """Return a name with each of its words replaced by the one that it is taken for."""
    return _WORD.sub(lambda found: meant.get(found.group(), found.group()), name)


def _neighbours(rows: QuerySet[Any], column: str, name: str) -> Iterator[Any]:
    """Yield the values of a column that follow and precede ``name`` in the order of its index."""
    for comparison, order in (("gte", column), ("lt", f"-{column}")):
        following = rows.filter(**{f"{column}__{comparison}": name}).order_by(order)
        yield from following.values_list(column, flat=True)[:_NEIGHBOURS]


def nearest(
    name: str, found: Iterable[str], meant: Mapping[str, str] | None = None, *, most: int = MOST_NAMES
) -> list[str]:
    """Return those of the names ``found`` that are near to ``name``, the nearest first, at most ``most``.

    ``meant`` has for each word of ``name`` the one that it is taken for, by default itself.
    """
    words = set((meant or {}).values())
    typed = {name, put_right(name, meant or {})}
    rated = sorted((-max(_share(words, one), *(_likeness(each, one) for each in typed)), one) for one in found)
    return [one for likeness, one in rated if -likeness >= _LEAST_LIKENESS][:most]


def _likeness(asked: str, name: str) -> float:
    # What is the beginning of a name, or the name without an ending, is near however long the rest is.
    if name.startswith(f"{asked}-") or asked.startswith(f"{name}-"):
        return 0.9
    matcher = SequenceMatcher(None, asked, name, autojunk=False)
    # The ratio is below both, and takes longer than either.
    if matcher.real_quick_ratio() < _LEAST_LIKENESS or matcher.quick_ratio() < _LEAST_LIKENESS:
        return 0.0
    return matcher.ratio()


def _share(words: Collection[str], name: str) -> float:
    """Return how near a name is that has all of the words that are asked for, the nearer the less it has besides."""
    held = set(_WORD.findall(name))
    return 0.6 + 0.3 * len(words) / len(held) if words and held.issuperset(words) else 0.0
