"""Keep the counts of lists: write what a change of a skill adds to them, and add the changes up.

A change is a row that is only inserted, in the transaction that changes the skill. ``fold`` adds the rows to the counts
and deletes them; whoever reads a count adds what is not folded yet. What is counted are the values of each of
``COUNTED_FACETS`` in the list of all skills and in each list that one value of another facet filters, and those of
``COUNTED_TOGETHER`` in the lists that two of these filter; besides, the skills that were first published on each day
(UTC), all and of each publisher, and the downloads of each day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, date
from functools import partial
from itertools import combinations, count, permutations
from typing import Final

from django.db import connections, transaction

from marketplace.models.derived import SkillCount, SkillCountChange
from marketplace.records import SkillRecord
from marketplace.skills.agents import agents_of
from marketplace.skills.visibility import is_public
from vskill.environments import WorkerEnv
from vskill.kv.clock import parse_isoformat
from vskill.kv.codec import storable
from vskill.kv.rows import NewRows, column_types, insert_rows, with_rows

TOTAL: Final = "total"
VERSIONS: Final = "versions"
PUBLISHERS: Final = "publishers"
VERDICT: Final = "verdict"
PUBLISHER: Final = "publisher"
CAPABILITY: Final = "capability"
# Their values are days, such as 2026-11-29.
PUBLISHED: Final = "published"
DOWNLOADS: Final = "downloads"
AGENT: Final = "agent"
TAG: Final = "tag"
LICENSE: Final = "license"
COUNTED_FACETS: Final = (VERDICT, CAPABILITY, PUBLISHER, AGENT, TAG, LICENSE)
# Authors choose the others freely: in lists of two, there would be rows for each tag of each publisher and verdict.
COUNTED_TOGETHER: Final = (VERDICT, CAPABILITY, PUBLISHER)
# Capabilities come last of those that are counted together: what an engine calls one can hold any character, the values
# of the others cannot.
_ORDER: Final = (PUBLISHER, VERDICT, CAPABILITY, AGENT, TAG, LICENSE)
COLUMNS: Final = ("namespace", "within", "kind", "value")
Key = tuple[str, str, str]
"""The list, the facet and its value that a count is about."""
Facet = tuple[str, str]
"""A facet and one of its values."""

# As the column of a skill has it.
_LONGEST_LICENSE: Final = 100
# As the column of a value of a facet has it.
_LONGEST_CAPABILITY: Final = 64
# A process folds after so many changes of skills: reads then add up some hundred rows.
_FOLD_AFTER: Final = 64
_made: Final = count(1)
_MOST_FOLDED: Final = 20_000
_DELETED_AT_ONCE: Final = 500


def list_of(facets: Mapping[str, str]) -> str:
    """Return the name of the list that facets filter by these values, as counts have it."""
    return "&".join(f"{kind}:{facets[kind]}" for kind in _ORDER if kind in facets)


def counts_values(name: str, others: Collection[str]) -> bool:
    """Return whether the values of a facet are counted in the lists that ``others`` filter, by one value each."""
    return len(others) <= 1 or {name, *others} <= set(COUNTED_TOGETHER)


def total_key(facets: Mapping[str, str]) -> Key | None:
    """Return the count that is the length of the list that facets filter by these values, ``None`` where none is."""
    if not facets:
        return ("", TOTAL, "")
    *others, (name, value) = facets.items()
    return (list_of(dict(others)), name, value) if counts_values(name, dict(others)) else None


def counted(
    record: SkillRecord | None, kept_versions: int = 0, *, facets: Iterable[Facet] | None = None
) -> Counter[Key]:
    """Return what a skill adds to each count; one that not everybody sees adds nothing.

    ``kept_versions`` is how many of its versions are not in quarantine. ``None`` stands for a skill that is not there.
    ``facets`` take the place of those that it says it has (``facets_of``).
    """
    counts: Counter[Key] = Counter()
    if record is None or not is_public(record):
        return counts
    counts["", VERSIONS, ""] = kept_versions
    if not record.latest_version:
        return counts
    counts["", TOTAL, ""] = 1
    if (published := parse_isoformat(record.published_at)) is not None:
        day = published.astimezone(UTC).date().isoformat()
        counts["", PUBLISHED, day] = 1
        if record.publisher_handle:
            counts[list_of({PUBLISHER: record.publisher_handle}), PUBLISHED, day] = 1
    held = _values_of(record, facets_of(record) if facets is None else facets)
    counts.update({("", kind, value): 1 for kind, value in held})
    for (kind, value), (other, beside) in permutations(held, 2):
        if kind != other:
            counts[list_of({kind: value}), other, beside] = 1
    for together in combinations([one for one in held if one[0] in COUNTED_TOGETHER], len(COUNTED_TOGETHER)):
        if len(dict(together)) < len(together):
            continue
        for kind, value in together:
            counts[list_of({other: beside for other, beside in together if other != kind}), kind, value] = 1
    return counts


def _values_of(record: SkillRecord, facets: Iterable[Facet]) -> list[Facet]:
    """Return each facet with a value that a skill has of it."""
    held = [(VERDICT, record.verdict), (PUBLISHER, record.publisher_handle)]
    held += [(LICENSE, storable(record.license)[:_LONGEST_LICENSE]), *facets]
    return [(kind, value) for kind, value in held if value]


def facets_of(record: SkillRecord) -> list[Facet]:
    """Return each facet of which a skill may have several values, with a value that it has of it."""
    values: dict[str, Iterable[str]] = {
        TAG: record.tags,
        CAPABILITY: (one[:_LONGEST_CAPABILITY] for one in record.capabilities),
        AGENT: agents_of(record),
    }
    return [(kind, value) for kind, each in values.items() for value in dict.fromkeys(each)]


def change_counts(env: WorkerEnv, before: Mapping[Key, int], after: Mapping[Key, int]) -> None:
    """Write the differences between what a skill added to the counts ``before`` and ``after`` it was changed.

    Call it in the transaction of the change. Now and then the end of that transaction folds.
    """
    _write_changes(
        env,
        [
            (key, change)
            for key in sorted(before.keys() | after.keys())
            if (change := after.get(key, 0) - before.get(key, 0))
        ],
    )


def count_download_of_day(env: WorkerEnv, day: date) -> None:
    """Write that there was one more download on ``day``; call it in the transaction that counts it for its skill."""
    _write_changes(env, [(("", DOWNLOADS, day.isoformat()), 1)])


def _write_changes(env: WorkerEnv, changes: list[tuple[Key, int]]) -> None:
    if not changes:
        return
    rows = [(env.name, *key, change) for key, change in changes]
    insert_rows(env.database, NewRows(SkillCountChange, (*COLUMNS, "change"), rows))
    if next(_made) % _FOLD_AFTER == 0:
        # Robust: what was done is done, and the next one folds more.
        transaction.on_commit(partial(fold, env), using=env.database, robust=True)


def fold(env: WorkerEnv) -> int:
    """Add the changes to the counts, at most some thousand, and return how many there were.

    It is one transaction. Where another process folds, nothing is done.
    """
    changes = SkillCountChange.objects.using(env.database).filter(namespace=env.name)
    if not changes.exists():
        # Without the lock for writing, of which SQLite has one.
        return 0
    with transaction.atomic(using=env.database):
        if not lock_counts(env, wait=False):
            return 0
        rows = list(changes.order_by("pk").values_list("pk", "within", "kind", "value", "change")[:_MOST_FOLDED])
        sums: Counter[Key] = Counter()
        for _pk, within, kind, value, change in rows:
            sums[within, kind, value] += change
        sums["", PUBLISHERS, ""] += _more_publishers(env, sums)
        _add(env, [(env.name, *key, change) for key, change in sorted(sums.items()) if change])
        for start in range(0, len(rows), _DELETED_AT_ONCE):
            changes.filter(pk__in=[row[0] for row in rows[start : start + _DELETED_AT_ONCE]]).delete()
    return len(rows)


def lock_counts(env: WorkerEnv, *, wait: bool) -> bool:
    """Lock the counts of an environment until the transaction ends; whoever adds up or mends counts holds the lock.

    Returns ``False`` where another process holds it, unless ``wait``.
    """
    rows = SkillCount.objects.using(env.database)
    own = {"namespace": env.name, "within": "", "kind": PUBLISHERS, "value": ""}
    if not rows.filter(**own).exists():
        rows.bulk_create([SkillCount(**own, count=0)], ignore_conflicts=True)
    return rows.select_for_update(skip_locked=not wait).filter(**own).first() is not None


def _more_publishers(env: WorkerEnv, changes: Mapping[Key, int]) -> int:
    """Return how many more publishers have a listed skill after these changes."""
    changed = {value: change for (within, kind, value), change in changes.items() if kind == PUBLISHER and not within}
    rows = SkillCount.objects.using(env.database).filter(namespace=env.name, within="", kind=PUBLISHER)
    before = dict(rows.filter(value__in=changed).values_list("value", "count"))
    return sum((before.get(one, 0) + change > 0) - (before.get(one, 0) > 0) for one, change in changed.items())


def _add(env: WorkerEnv, rows: list[tuple[str, str, str, str, int]]) -> None:
    if not rows:
        return
    connection, columns = connections[env.database], (*COLUMNS, "count")
    new = NewRows(SkillCount, columns, rows)
    given, parameters = with_rows(connection.vendor, column_types(SkillCount, columns, env.database), rows)
    # WHERE tells SQLite that ON belongs to the INSERT and not to a join.
    text = (
        f"{given} {new.insert} SELECT * FROM v WHERE TRUE ON CONFLICT ({', '.join(COLUMNS)}) "  # noqa: S608 - names of our own models
        f'DO UPDATE SET count = "{SkillCount._meta.db_table}".count + excluded.count'
    )
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
