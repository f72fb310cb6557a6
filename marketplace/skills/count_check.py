"""Compare the counts of lists and of days with the skills and downloads themselves, and mend them."""

from __future__ import annotations

from datetime import date, timedelta
from functools import partial
from typing import Any, Final

from django.db import connections, transaction
from django.db.models import Count, Q, Sum

from marketplace.models import SkillEntry, SkillVersion
from marketplace.models.derived import DownloadDay, SkillCount, SkillCountChange, SkillFacet
from marketplace.records import Visibility
from marketplace.skills.counts import (
    CAPABILITY,
    COLUMNS,
    DOWNLOADS,
    LICENSE,
    PUBLISHED,
    PUBLISHER,
    PUBLISHERS,
    TOTAL,
    VERDICT,
    VERSIONS,
    fold,
    lock_counts,
)
from vskill.accounts.audiences import MEMBERS, TEAM
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now

# Of downloads: what is shown, and what is compared every hour. An earlier release counts none while it still runs.
CHECKED_DAYS: Final = 200
CHECKED_OFTEN: Final = 7

_SKILLS: Final = f'"{SkillEntry._meta.db_table}"'
_SHOWN: Final = f"namespace = %(namespace)s AND visibility = '{Visibility.VISIBLE}' AND slug <> ''"
# Doubled for the driver. Of a skill that not everybody sees, downloads are in no total.
_PRIVATE: Final = f"s.visibility = '{MEMBERS}' OR s.visibility LIKE '{TEAM}%%' OR s.visibility LIKE '_/%%'"
_COLUMNS: Final = {"v": VERDICT, "p": PUBLISHER, "c": CAPABILITY}


# Older days of downloads are left as they are.
_CHECKED: Final = f"(kind <> '{DOWNLOADS}' OR value >= %(since)s)"


def _list(columns: str) -> str:
    """Return the SQL of the name of the list that these columns filter; see ``counts.list_of``."""
    return " || '&' || ".join(f"'{_COLUMNS[column]}:' || {column}" for column in columns)


# What is there, less what is counted, in one statement: whatever is published meanwhile is in both or in neither.
_DIFFERENCES: Final = f"""
WITH skill AS (SELECT id, verdict {{c}} AS v, publisher_handle {{c}} AS p, license {{c}} AS l, published_at
               FROM {_SKILLS} WHERE {_SHOWN} AND latest_version <> ''),
     held AS (SELECT id, '{VERDICT}' {{c}} AS kind, v AS value FROM skill WHERE v <> ''
              UNION ALL SELECT id, '{PUBLISHER}', p FROM skill WHERE p <> ''
              UNION ALL SELECT id, '{LICENSE}', l FROM skill WHERE l <> ''
              UNION ALL SELECT skill.id, f.kind {{c}}, f.value FROM skill
              JOIN "{SkillFacet._meta.db_table}" f ON f.skill_id = skill.id),
     pair AS (SELECT a.kind AS kind, a.value AS value, b.kind AS other, b.value AS beside, COUNT(*) AS n
              FROM held a JOIN held b ON b.id = a.id AND a.kind < b.kind GROUP BY a.kind, a.value, b.kind, b.value),
     vpc AS (SELECT v, p, value AS c, COUNT(*) AS n FROM skill JOIN held ON held.id = skill.id
             WHERE kind = '{CAPABILITY}' AND v <> '' AND p <> '' GROUP BY v, p, value),
     told AS (
         SELECT '' {{c}} AS within, '{TOTAL}' {{c}} AS kind, '' {{c}} AS value, COUNT(*) AS n FROM skill
         UNION ALL
         SELECT '', '{VERSIONS}', '', COUNT(*) FROM "{SkillVersion._meta.db_table}" v
         JOIN {_SKILLS} s ON s.id = v.skill_id WHERE v.quarantined_at IS NULL AND s.namespace = %(namespace)s
         AND s.visibility = '{Visibility.VISIBLE}' AND s.slug <> ''
         UNION ALL SELECT '', '{PUBLISHED}', {{published}}, COUNT(*) FROM skill
         WHERE published_at IS NOT NULL GROUP BY {{published}}
         UNION ALL SELECT {_list("p")}, '{PUBLISHED}', {{published}}, COUNT(*) FROM skill
         WHERE published_at IS NOT NULL AND p <> '' GROUP BY p, {{published}}
         UNION ALL SELECT '', '{DOWNLOADS}', {{day}}, SUM(d.count) FROM "{DownloadDay._meta.db_table}" d
         JOIN {_SKILLS} s ON s.id = d.skill_id WHERE d.namespace = %(namespace)s AND d.day >= {{since}}
         AND NOT ({_PRIVATE}) GROUP BY d.day
         UNION ALL SELECT '', kind, value, COUNT(*) FROM held GROUP BY kind, value
         UNION ALL SELECT kind || ':' || value, other, beside, n FROM pair
         UNION ALL SELECT other || ':' || beside, kind, value, n FROM pair
         UNION ALL SELECT {_list("pv")}, '{CAPABILITY}', c, n FROM vpc
         UNION ALL SELECT {_list("pc")}, '{VERDICT}', v, n FROM vpc
         UNION ALL SELECT {_list("vc")}, '{PUBLISHER}', p, n FROM vpc
         UNION ALL SELECT within, kind, value, -count FROM "{SkillCount._meta.db_table}"
         WHERE namespace = %(namespace)s AND kind <> '{PUBLISHERS}' AND {_CHECKED}
         UNION ALL SELECT within, kind, value, -change FROM "{SkillCountChange._meta.db_table}"
         WHERE namespace = %(namespace)s AND {_CHECKED})
SELECT %(namespace)s {{cast}}, within, kind, value, SUM(n) FROM told
GROUP BY within, kind, value HAVING SUM(n) <> 0
"""  # noqa: S608 - names of our own models
_MEND: Final = f'INSERT INTO "{SkillCountChange._meta.db_table}" ({", ".join(COLUMNS)}, change)'


def wrong_counts(env: WorkerEnv, days: int = CHECKED_DAYS) -> list[tuple[str, str, str, int]]:
    """Return the counts that are wrong: list, facet, value, and how many are missing, negative where it is too high.

    Every skill of the environment is read, and the downloads of so many ``days``, by one statement.
    """
    rows = _run(env, "", days, fetch=True)
    found = [(within, kind, value, int(off)) for _namespace, within, kind, value, off in rows]
    off = _publishers_missing(env)
    return [*found, *([("", PUBLISHERS, "", off)] if off else [])]


def recount(env: WorkerEnv) -> int:
    """Mend every count that is wrong, and return how many were; add up the changes that wait."""
    while fold(env):
        pass
    if not (wrong := wrong_counts(env, CHECKED_OFTEN)):
        return 0
    with transaction.atomic(using=env.database):
        mend_counts(env, CHECKED_OFTEN)
    return len(wrong)


def mend_counts(env: WorkerEnv, days: int = CHECKED_DAYS) -> None:
    """Make every count right, of downloads those of so many ``days``, in the caller's transaction.

    What is wrong is written as changes, so nobody who publishes has to wait for it.
    """
    lock_counts(env, wait=True)
    _run(env, _MEND, days)
    rows = SkillCount.objects.using(env.database).filter(namespace=env.name, within="")
    rows.filter(kind=PUBLISHERS).update(count=rows.filter(kind=PUBLISHER, count__gt=0).count())
    transaction.on_commit(partial(fold, env), using=env.database, robust=True)


def _publishers_missing(env: WorkerEnv) -> int:
    rows = SkillCount.objects.using(env.database).filter(namespace=env.name, within="")
    sums = rows.aggregate(
        kept=Sum("count", filter=Q(kind=PUBLISHERS)), there=Count("pk", filter=Q(kind=PUBLISHER, count__gt=0))
    )
    return int(sums["there"]) - int(sums["kept"] or 0)


def _run(env: WorkerEnv, before: str, days: int, *, fetch: bool = False) -> list[tuple[Any, ...]]:
    connection = connections[env.database]
    if connection.vendor == "postgresql":
        # Keys have the collation C there, and a union of columns with two collations has none.
        collation, cast, since = 'COLLATE "C"', "::varchar", "CAST(%(since)s AS date)"
        day, published = (f"to_char({one}, 'YYYY-MM-DD')" for one in ("d.day", "published_at AT TIME ZONE 'UTC'"))
    else:
        collation, cast, since, day, published = "", "", "%(since)s", "d.day", "substr(published_at, 1, 10)"
    text = _DIFFERENCES.format(
        c=collation, cast=cast, since=since, day=f"{day} {collation}", published=f"{published} {collation}"
    )
    first: date = database_now(env.database).date() - timedelta(days=days - 1)
    given = {"namespace": env.name, "since": first.isoformat()}
    with transaction.atomic(using=env.database), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Of rows that it has not counted yet it expects few, and would compare each of a million with all others.
            cursor.execute("SET LOCAL enable_nestloop = off")
        cursor.execute(f"{before} {text}", given)
        found = cursor.fetchall() if fetch else []
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_nestloop TO DEFAULT")
        return found
