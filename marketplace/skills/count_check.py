"""Compare the counts of lists with the skills themselves, and mend them."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from django.db import connections, transaction
from django.db.models import Count, Q, Sum

from marketplace.derived_models import SkillCount, SkillCountChange, SkillFacet
from marketplace.models import SkillEntry, SkillVersion
from marketplace.records import Visibility
from marketplace.skills.counts import (
    CAPABILITY,
    COLUMNS,
    PUBLISHER,
    PUBLISHERS,
    TOTAL,
    VERDICT,
    VERSIONS,
    fold,
    lock_counts,
)
from vskill.environments import WorkerEnv

_SKILLS: Final = f'"{SkillEntry._meta.db_table}"'
_SHOWN: Final = f"namespace = %(namespace)s AND visibility = '{Visibility.VISIBLE}' AND slug <> ''"
_COLUMNS: Final = {"v": VERDICT, "p": PUBLISHER, "c": CAPABILITY}


def _list(columns: str) -> str:
    """Return the SQL of the name of the list that these columns filter; see ``counts.list_of``."""
    return " || '&' || ".join(f"'{_COLUMNS[column]}:' || {column}" for column in columns)


# What is there, less what is counted, in one statement: whatever is published meanwhile is in both or in neither.
_DIFFERENCES: Final = f"""
WITH skill AS (SELECT id, verdict {{c}} AS v, publisher_handle {{c}} AS p FROM {_SKILLS}
               WHERE {_SHOWN} AND latest_version <> ''),
     able AS (SELECT skill.id, v, p, f.value AS c FROM skill
              JOIN "{SkillFacet._meta.db_table}" f ON f.skill_id = skill.id WHERE f.kind = '{CAPABILITY}'),
     vp AS (SELECT v, p, COUNT(*) AS n FROM skill WHERE v <> '' AND p <> '' GROUP BY v, p),
     vc AS (SELECT v, c, COUNT(*) AS n FROM able WHERE v <> '' GROUP BY v, c),
     pc AS (SELECT p, c, COUNT(*) AS n FROM able WHERE p <> '' GROUP BY p, c),
     vpc AS (SELECT v, p, c, COUNT(*) AS n FROM able WHERE v <> '' AND p <> '' GROUP BY v, p, c),
     told AS (
         SELECT '' {{c}} AS within, '{TOTAL}' {{c}} AS kind, '' {{c}} AS value, COUNT(*) AS n FROM skill
         UNION ALL
         SELECT '', '{VERSIONS}', '', COUNT(*) FROM "{SkillVersion._meta.db_table}" v
         JOIN {_SKILLS} s ON s.id = v.skill_id WHERE v.quarantined_at IS NULL AND s.namespace = %(namespace)s
         AND s.visibility = '{Visibility.VISIBLE}' AND s.slug <> ''
         UNION ALL SELECT '', '{VERDICT}', v, COUNT(*) FROM skill WHERE v <> '' GROUP BY v
         UNION ALL SELECT '', '{PUBLISHER}', p, COUNT(*) FROM skill WHERE p <> '' GROUP BY p
         UNION ALL SELECT '', '{CAPABILITY}', c, COUNT(*) FROM able GROUP BY c
         UNION ALL SELECT {_list("v")}, '{PUBLISHER}', p, n FROM vp
         UNION ALL SELECT {_list("p")}, '{VERDICT}', v, n FROM vp
         UNION ALL SELECT {_list("v")}, '{CAPABILITY}', c, n FROM vc
         UNION ALL SELECT {_list("c")}, '{VERDICT}', v, n FROM vc
         UNION ALL SELECT {_list("p")}, '{CAPABILITY}', c, n FROM pc
         UNION ALL SELECT {_list("c")}, '{PUBLISHER}', p, n FROM pc
         UNION ALL SELECT {_list("pv")}, '{CAPABILITY}', c, n FROM vpc
         UNION ALL SELECT {_list("pc")}, '{VERDICT}', v, n FROM vpc
         UNION ALL SELECT {_list("vc")}, '{PUBLISHER}', p, n FROM vpc
         UNION ALL SELECT within, kind, value, -count FROM "{SkillCount._meta.db_table}"
         WHERE namespace = %(namespace)s AND kind <> '{PUBLISHERS}'
         UNION ALL SELECT within, kind, value, -change FROM "{SkillCountChange._meta.db_table}"
         WHERE namespace = %(namespace)s)
SELECT %(namespace)s {{cast}}, within, kind, value, SUM(n) FROM told
GROUP BY within, kind, value HAVING SUM(n) <> 0
"""  # noqa: S608 - names of our own models
_MEND: Final = f'INSERT INTO "{SkillCountChange._meta.db_table}" ({", ".join(COLUMNS)}, change)'


def wrong_counts(env: WorkerEnv) -> list[tuple[str, str, str, int]]:
    """Return the counts that are wrong: list, facet, value, and how many are missing, negative where it is too high.

    Every skill of the environment is read, by one statement.
    """
    found = [(within, kind, value, int(off)) for _namespace, within, kind, value, off in _run(env, "", fetch=True)]
    off = _publishers_missing(env)
    return [*found, *([("", PUBLISHERS, "", off)] if off else [])]


def recount(env: WorkerEnv) -> int:
    """Mend every count that is wrong, and return how many were; add up the changes that wait."""
    while fold(env):
        pass
    if not (wrong := wrong_counts(env)):
        return 0
    with transaction.atomic(using=env.database):
        mend_counts(env)
    return len(wrong)


def mend_counts(env: WorkerEnv) -> None:
    """Make every count right, in the caller's transaction.

    What is wrong is written as changes, so nobody who publishes has to wait for it.
    """
    lock_counts(env, wait=True)
    _run(env, _MEND)
    rows = SkillCount.objects.using(env.database).filter(namespace=env.name, within="")
    rows.filter(kind=PUBLISHERS).update(count=rows.filter(kind=PUBLISHER, count__gt=0).count())
    transaction.on_commit(partial(fold, env), using=env.database, robust=True)


def _publishers_missing(env: WorkerEnv) -> int:
    rows = SkillCount.objects.using(env.database).filter(namespace=env.name, within="")
    sums = rows.aggregate(
        kept=Sum("count", filter=Q(kind=PUBLISHERS)), there=Count("pk", filter=Q(kind=PUBLISHER, count__gt=0))
    )
    return int(sums["there"]) - int(sums["kept"] or 0)


def _run(env: WorkerEnv, before: str, *, fetch: bool = False) -> list[tuple[Any, ...]]:
    connection = connections[env.database]
    on_postgres = connection.vendor == "postgresql"
    # Keys have the collation C there, and a union of columns with two collations has none.
    text = _DIFFERENCES.format(c='COLLATE "C"' if on_postgres else "", cast="::varchar" if on_postgres else "")
    with connection.cursor() as cursor:
        cursor.execute(f"{before} {text}", {"namespace": env.name})
        return cursor.fetchall() if fetch else []
