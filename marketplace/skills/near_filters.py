"""Values of filters that are near to one that no listed skill has, found among the values that are counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from django.db import connections

from marketplace.models.derived import SkillCount, SkillCountChange
from marketplace.skills.count_reads import counts_of
from marketplace.skills.counts import LICENSE, PUBLISHER, TAG
from marketplace.skills.filtered import FilteredSkills
from marketplace.skills.near_names import MOST_NAMES, can_be_near, nearest
from vskill.environments import WorkerEnv

# What authors choose freely. Another unknown verdict, capability or agent is refused with those that there are.
FREE: Final = (PUBLISHER, TAG, LICENSE)
# Of the alphabet, those that begin as the value does; and the most frequent ones, for a slip at its beginning.
_NEIGHBOURS: Final = 12
_FREQUENT: Final = 200
_COUNTS: Final = f'"{SkillCount._meta.db_table}"'
_OF_FACET: Final = "namespace = %(namespace)s AND within = '' AND kind = %(kind@)s"
_SOME: Final = (
    "SELECT * FROM (SELECT kind, value FROM {table} WHERE {which} ORDER BY {order} LIMIT {most}) AS part{part}"
)


def near_filters(found: FilteredSkills) -> dict[str, list[str]]:
    """Return for each filter whose value no listed skill has the values that are near to it, the nearest first.

    It takes two statements where there is such a filter, and none elsewhere. Filters without a near value are left out.
    """
    asked = {
        name: value.strip().lower()
        for name in FREE
        if (value := getattr(found.filters, name)) and found.kept_count(name) == 0 and can_be_near(value.strip())
    }
    if not asked:
        return {}
    near = {name: _nearest(name, asked[name], values) for name, values in _candidates(found.env, asked).items()}
    present = counts_of(found.env, [("", name, value) for name, values in near.items() for value in values])
    shown = {name: [one for one in values if present["", name, one]] for name, values in near.items()}
    return {name: values for name, values in shown.items() if values}


def _nearest(name: str, asked: str, values: set[str]) -> list[str]:
    spelled: defaultdict[str, list[str]] = defaultdict(list)
    for value in values:
        spelled[value.lower()].append(value)
        if name == PUBLISHER:
            # Without its host, which people leave out.
            spelled[value.lower().partition(".")[0]].append(value)
    return list(dict.fromkeys(value for one in nearest(asked, spelled) for value in spelled[one]))[:MOST_NAMES]


def _candidates(env: WorkerEnv, asked: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the values of each facet that stand beside the one asked for, and the most frequent, by one statement."""
    parts: list[str] = []
    parameters: dict[str, Any] = {"namespace": env.name}
    for number, (name, value) in enumerate(asked.items()):
        parameters |= {f"kind{number}": name, f"value{number}": value}
        which = _OF_FACET.replace("@", str(number))
        wanted = [(_COUNTS, f"{which} AND count > 0", "count DESC, value", _FREQUENT)]
        for table in (_COUNTS, f'"{SkillCountChange._meta.db_table}"'):
            wanted += [
                (table, f"{which} AND value >= %(value{number})s", "value", _NEIGHBOURS),
                (table, f"{which} AND value < %(value{number})s", "value DESC", _NEIGHBOURS),
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
