"""Read the counts of lists, each by one statement: a fold in between counts nothing twice and misses nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from django.db import connections

from marketplace.models.derived import SkillCount, SkillCountChange
from marketplace.skills.counts import (
    COLUMNS,
    DOWNLOADS,
    PUBLISHED,
    PUBLISHER,
    PUBLISHERS,
    TOTAL,
    VERSIONS,
    Key,
    list_of,
)
from vskill.db import prepared_cursor
from vskill.environments import WorkerEnv
from vskill.kv.rows import column_types, with_rows

# PostgreSQL raises an error for a longer text, which anybody can put into an address.
_LONGEST: Final = tuple(int(getattr(SkillCount._meta.get_field(name), "max_length", 0)) for name in COLUMNS[1:])
_COUNTS: Final = f'"{SkillCount._meta.db_table}"'
_CHANGES: Final = f'"{SkillCountChange._meta.db_table}"'
# What stands in place of the number of a list: a count that is asked for by its key, a change of one of a list, and
# what was counted before that change.
_OF_ONE: Final = -1
_CHANGE: Final = -2
_BEFORE: Final = -3
_OF_KEY: Final = "t.namespace = %(namespace)s AND t.within = v.column1 AND t.kind = v.column2 AND t.value = v.column3"
_EACH: Final = f"""
SELECT {_OF_ONE} AS list, v.column1 AS within, v.column2 AS kind, v.column3 AS value,
       COALESCE((SELECT t.count FROM {_COUNTS} t WHERE {_OF_KEY}), 0)
     + COALESCE((SELECT SUM(t.change) FROM {_CHANGES} t WHERE {_OF_KEY}), 0) AS found FROM v
"""  # noqa: S608 - names of our own models

# As many of the highest as are wanted, and one more for each value that is being changed: with the counts and changes
# of those values, the highest of all are among these. The number of the list stands in place of ``@``.
_OF_LIST: Final = "within = %(within@)s AND kind = %(kind@)s"
_LIST: Final = "SELECT %(within@)s AS within, %(kind@)s AS kind"
_CHANGED: Final = f"""
wanted AS ({{lists}}),
changed AS (SELECT w.within, w.kind, t.value, SUM(t.change) AS change FROM wanted w
            JOIN {_CHANGES} t ON t.namespace = %(namespace)s AND t.within = w.within AND t.kind = w.kind
            GROUP BY w.within, w.kind, t.value)
"""  # noqa: S608 - names of our own models
_HIGHEST: Final = f"""
SELECT * FROM (SELECT @ AS list, within, kind, value, count AS found FROM {_COUNTS}
               WHERE namespace = %(namespace)s AND {_OF_LIST} AND count > 0 ORDER BY count DESC, value
               LIMIT %(limit)s + (SELECT COUNT(*) FROM changed WHERE {_OF_LIST})) AS list@
"""  # noqa: S608 - names of our own models
_CHANGES_OF: Final = f"SELECT {_CHANGE}, within, kind, value, change FROM changed"  # noqa: S608 - a number of our own
_BEFORE_CHANGES: Final = f"""
SELECT {_BEFORE}, t.within, t.kind, t.value, t.count FROM changed c
JOIN {_COUNTS} t ON t.namespace = %(namespace)s AND t.within = c.within AND t.kind = c.kind AND t.value = c.value
"""  # noqa: S608 - names of our own models

_FIGURES: Final = f"""
WITH part AS (SELECT kind, count AS found FROM {_COUNTS}
              WHERE namespace = %(namespace)s AND within = '' AND kind IN ('{TOTAL}', '{VERSIONS}', '{PUBLISHERS}')
              UNION ALL
              SELECT kind, change FROM {_CHANGES}
              WHERE namespace = %(namespace)s AND within = '' AND kind IN ('{TOTAL}', '{VERSIONS}')
              UNION ALL
              SELECT '{PUBLISHERS}',
                     (CASE WHEN before + change > 0 THEN 1 ELSE 0 END) - (CASE WHEN before > 0 THEN 1 ELSE 0 END)
              FROM (SELECT SUM(change) AS change, COALESCE((
                        SELECT count FROM {_COUNTS} c WHERE c.namespace = %(namespace)s AND c.within = ''
                        AND c.kind = '{PUBLISHER}' AND c.value = d.value), 0) AS before
                    FROM {_CHANGES} d WHERE namespace = %(namespace)s AND within = '' AND kind = '{PUBLISHER}'
                    GROUP BY d.value) AS publishers)
SELECT kind, SUM(found) FROM part GROUP BY kind
"""  # noqa: S608 - names of our own models


# Each kind by itself: of both at once, a plan that is made for any list reads all that this list has.
_OF_DAYS: Final = " UNION ALL ".join(
    f"SELECT kind, value, {column} FROM {table} "  # noqa: S608 - names of our own models
    f"WHERE namespace = %(namespace)s AND within = %(within)s AND kind = '{kind}' AND value >= %(since)s"
    for table, column in ((_COUNTS, "count"), (_CHANGES, "change"))
    for kind in (PUBLISHED, DOWNLOADS)
)


@dataclass(frozen=True)
class Figures:
    """How many skills are listed, how many of their versions are kept, and how many publishers they have."""

    skills: int
    versions: int
    publishers: int


def figures(env: WorkerEnv) -> Figures:
    """Return the totals of an environment."""
    found = {kind: max(0, int(count)) for kind, count in _rows(env, _FIGURES, {})}
    return Figures(found.get(TOTAL, 0), found.get(VERSIONS, 0), found.get(PUBLISHERS, 0))


@dataclass(frozen=True)
class Activity:
    """What was done on each day: listed skills first published then, and downloads; days without any are left out.

    ``downloads_since`` is the first day of which downloads are known, ``None`` where none is.
    """

    published: dict[date, int]
    downloads: dict[date, int]
    downloads_since: date | None


def activity(env: WorkerEnv, since: date) -> Activity:
    """Return the activity of an environment on each day from ``since`` on, from the counts alone."""
    found = _of_days(env, "", since)
    days = SkillCount.objects.using(env.database).filter(namespace=env.name, within="", kind=DOWNLOADS)
    first = days.order_by("value").values_list("value", flat=True).first()
    known = [*found[DOWNLOADS], *([date.fromisoformat(first)] if first else [])]
    return Activity(found[PUBLISHED], found[DOWNLOADS], min(known, default=None))


def publications(env: WorkerEnv, handle: str, since: date) -> dict[date, int]:
    """Return how many listed skills of a publisher were first published on each day from ``since`` on."""
    return _of_days(env, list_of({PUBLISHER: handle}), since)[PUBLISHED]


def _of_days(env: WorkerEnv, within: str, since: date) -> dict[str, dict[date, int]]:
    found = {kind: Counter[str]() for kind in (PUBLISHED, DOWNLOADS)}
    for kind, day, count in _rows(env, _OF_DAYS, {"within": within, "since": since.isoformat()}):
        found[kind][day] += int(count)
    return {
        kind: {date.fromisoformat(day): max(0, count) for day, count in days.items()} for kind, days in found.items()
    }


def counts_of(env: WorkerEnv, keys: Sequence[Key]) -> dict[Key, int]:
    """Return the counts with these keys; a key that is longer than the table holds has none."""
    return read_kept(env, keys).counts


def highest(env: WorkerEnv, within: str, kind: str, limit: int) -> list[tuple[str, int]]:
    """Return the most frequent values of the facet ``kind`` in the list ``within``, at most ``limit``, with counts."""
    return read_kept(env, (), [(within, kind)], limit=limit).highest[within, kind]


@dataclass(frozen=True)
class KeptCounts:
    """Counts by their keys, and of each facet of a list (its name, and what facet) the most frequent values."""

    counts: dict[Key, int]
    highest: dict[tuple[str, str], list[tuple[str, int]]]


def read_kept(
    env: WorkerEnv, keys: Sequence[Key], facets: Sequence[tuple[str, str]] = (), *, limit: int = 1
) -> KeptCounts:
    """Return the counts with these ``keys``, and at most ``limit`` values of each of ``facets``, by one statement.

    A key that is longer than the table holds has none. One of ``facets`` is the name of a list and what facet of it.
    """
    found = dict.fromkeys(keys, 0)
    storable = [key for key in keys if all(len(part) <= most for part, most in zip(key, _LONGEST, strict=True))]
    begin, parts, parameters = list[str](), list[str](), dict[str, Any]()
    if storable:
        types = column_types(SkillCount, COLUMNS[1:], env.database)
        given, parameters = with_rows(connections[env.database].vendor, types, storable)
        begin, parts = [given.removeprefix("WITH ")], [_EACH]
    if facets:
        numbers = [str(number) for number in range(len(facets))]
        begin.append(_CHANGED.format(lists=" UNION ALL ".join(_LIST.replace("@", one) for one in numbers)))
        parts += [*(_HIGHEST.replace("@", one) for one in numbers), _CHANGES_OF, _BEFORE_CHANGES]
        for one, (within, kind) in zip(numbers, facets, strict=True):
            parameters |= {f"within{one}": within, f"kind{one}": kind, "limit": limit}
    counted: dict[tuple[str, str], Counter[str]] = {facet: Counter() for facet in facets}
    text = f"WITH {', '.join(begin)} {' UNION ALL '.join(parts)}"
    changes: list[tuple[Counter[str], str, int]] = []
    for number, within, kind, value, count in _rows(env, text, parameters) if parts else ():
        if number == _OF_ONE:
            found[within, kind, value] = max(0, int(count))
        elif number == _CHANGE:
            changes.append((counted[within, kind], value, int(count)))
        else:
            counted[within, kind][value] = int(count)
    for counts, value, change in changes:
        counts[value] += change
    return KeptCounts(found, {facet: _first(counts, limit) for facet, counts in counted.items()})


def _first(counts: Counter[str], limit: int) -> list[tuple[str, int]]:
    there = [(value, count) for value, count in counts.items() if count > 0]
    return sorted(there, key=lambda one: (-one[1], one[0]))[:limit]


def _rows(env: WorkerEnv, text: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    with prepared_cursor(env.database) as cursor:
        cursor.execute(text, {"namespace": env.name, **parameters})
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
