"""Values of filters, publishers among them, that are near to one that no listed skill has.

They are found among the values that are counted, by three statements however many filters there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import connections

from marketplace.models.derived import SkillCount, SkillCountChange
from marketplace.skills.count_reads import counts_of
from marketplace.skills.counts import LICENSE, PUBLISHER, TAG
from marketplace.skills.filtered import FilteredSkills
from marketplace.skills.near_names import MOST_NAMES, can_be_near, meant_by, nearest, put_right
from vskill.environments import WorkerEnv

# What authors choose freely. Another unknown verdict, capability or agent is refused with those that there are.
FREE: Final = (PUBLISHER, TAG, LICENSE)
# Of the alphabet, those that begin as the value does; and the most frequent ones, for a slip at its beginning.
_NEIGHBOURS: Final = 12
_FREQUENT: Final = 200
# Among those that are rated, some may have no skill any more.
_RATED: Final = 4 * MOST_NAMES
_COUNTS: Final = f'"{SkillCount._meta.db_table}"'
_TABLES: Final = (_COUNTS, f'"{SkillCountChange._meta.db_table}"')
_OF_FACET: Final = "namespace = %(namespace)s AND within = '' AND kind = %(kind@)s"
_SOME: Final = (
    "SELECT * FROM (SELECT kind, value FROM {table} WHERE {which} ORDER BY {order} LIMIT {most}) AS part{part}"
)


def near_filters(found: FilteredSkills) -> dict[str, list[str]]:
    """Return for each filter whose value no listed skill has the values that are near to it, the nearest first.

    It takes no statement where there is no such filter. Filters without a near value are left out.
    """
    chosen = {name: getattr(found.filters, name) for name in FREE if found.kept_count(name) == 0}
    return _near(found.env, {name: value for name, value in chosen.items() if value})


def near_publishers(env: WorkerEnv, asked: str) -> list[str]:
    """Return the handles of publishers of listed skills that are near to ``asked``, the nearest first."""
    return _near(env, {PUBLISHER: asked}).get(PUBLISHER, [])


def _near(env: WorkerEnv, given: Mapping[str, str]) -> dict[str, list[str]]:
    """Return for each facet, of which a value is ``given``, those of its values that are near to that."""
    asked = {name: text for name, value in given.items() if can_be_near(text := value.strip().lower())}
    if not asked:
        return {}
    meant = meant_by(env, asked.values())
    written = {name: list(dict.fromkeys([one, put_right(one, meant[one])])) for name, one in asked.items()}
    near = {
        name: _nearest(name, asked[name], values, meant[asked[name]])
        for name, values in _candidates(env, written).items()
    }
    present = counts_of(env, [("", name, value) for name, values in near.items() for value in values])
    shown = {name: [one for one in values if present["", name, one]] for name, values in near.items()}
    return {name: values[:MOST_NAMES] for name, values in shown.items() if values}


def _nearest(name: str, asked: str, values: set[str], meant: Mapping[str, str]) -> list[str]:
    spelled: defaultdict[str, list[str]] = defaultdict(list)
    for value in sorted(values):
        spelled[value.lower()].append(value)
        if name == PUBLISHER:
            # Without its host, which people leave out.
            spelled[value.lower().partition(".")[0]].append(value)
    return list(dict.fromkeys(value for one in nearest(asked, spelled, meant, most=_RATED) for value in spelled[one]))


def _candidates(env: WorkerEnv, asked: Mapping[str, Sequence[str]]) -> dict[str, set[str]]:
    """Return the values of each facet that stand beside those asked for, and the most frequent, by one statement."""
    parts: list[str] = []
    parameters: dict[str, Any] = {"namespace": env.name}
    for number, (name, values) in enumerate(asked.items()):
        parameters[f"kind{number}"] = name
        which = _OF_FACET.replace("@", str(number))
        wanted = [(_COUNTS, f"{which} AND count > 0", "count DESC, value", _FREQUENT)]
        for place, value in enumerate(values):
            parameter = f"value{number}_{place}"
            parameters[parameter] = value
            for table in _TABLES:
                wanted += [
                    (table, f"{which} AND value >= %({parameter})s", "value", _NEIGHBOURS),
                    (table, f"{which} AND value < %({parameter})s", "value DESC", _NEIGHBOURS),
                ]
        parts += [
            _SOME.format(table=table, which=condition, order=order, most=most, part=len(parts) + place)
            for place, (table, condition, order, most) in enumerate(wanted)
        ]
    found: dict[str, set[str]] = {name: set() for name in asked}
    with connections[env.database].cursor() as cursor:
        cursor.execute(" UNION ".join(parts), parameters)
        for kind, value in cursor.fetchall():
            found[kind].add(value)
    return found
