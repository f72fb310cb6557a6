"""The sitemap in parts, each a range of the numbers of rows: one look-up however many skills there are."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final
from xml.sax.saxutils import escape

from django.db import connections
from django.db.models import F, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.lookups import Exact

from marketplace.models import SkillEntry
from marketplace.skills.visibility import public_skills
from vskill.environments import WorkerEnv
from vskill.unindexed import Unindexed

# The protocol allows 50,000 addresses; a part of so many takes as long as a page.
PART: Final = 500
MOST_PARTS: Final = 4_000
_XMLNS: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"


def parts(env: WorkerEnv) -> list[int]:
    """Return the numbers of the parts that have a skill, the oldest first; call it on a database thread."""
    # Each step looks up the first skill behind the part before, so that one statement takes as many steps as parts.
    behind = RawSQL("((SELECT part.number) + 1) * %s", (PART,))
    first = _listed(env).filter(Exact(Unindexed(F("namespace")), env.name)).order_by("pk").values("pk")
    (one, one_given), (following, given) = (
        rows.query.get_compiler(env.database).as_sql() for rows in (first[:1], first.filter(pk__gte=behind)[:1])
    )
    text = (
        f"WITH RECURSIVE part(number) AS (SELECT ({one}) / %s UNION ALL "  # noqa: S608 - a query of our own
        f"SELECT ({following}) / %s FROM part WHERE part.number IS NOT NULL) "
        "SELECT number FROM part WHERE number IS NOT NULL LIMIT %s"
    )
    with connections[env.database].cursor() as cursor:
        cursor.execute(text, [*one_given, PART, *given, PART, MOST_PARTS])
        return [int(number) for (number,) in cursor.fetchall()]


def skills_of_part(env: WorkerEnv, number: int) -> list[tuple[str, datetime | None]]:
    """Return the slug and the time of the last change of each listed skill in a part, in the order of their rows."""
    rows = _listed(env).filter(pk__gte=number * PART, pk__lt=(number + 1) * PART).order_by("pk")
    found = rows.values_list("namespace", "slug", "changed_at")
    return [(slug, changed_at) for namespace, slug, changed_at in found if namespace == env.name]


def _listed(env: WorkerEnv) -> QuerySet[SkillEntry]:
    # Callers compare the environment, so that SQLite follows no index past all skills of it.
    return public_skills(SkillEntry.objects.using(env.database))


def index_of(addresses: Iterable[str]) -> str:
    """Return the XML of an index of sitemaps at these addresses."""
    return _written("sitemapindex", "sitemap", [(one, None) for one in addresses])


def map_of(addresses: Iterable[tuple[str, datetime | None]]) -> str:
    """Return the XML of a sitemap of addresses, each with the time of its last change where one is known."""
    return _written("urlset", "url", addresses)


def _written(root: str, each: str, addresses: Iterable[tuple[str, datetime | None]]) -> str:
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f'<{root} xmlns="{_XMLNS}">']
    for address, changed_at in addresses:
        time = f"<lastmod>{changed_at.isoformat(timespec='seconds')}</lastmod>" if changed_at is not None else ""
        lines.append(f"<{each}><loc>{escape(address)}</loc>{time}</{each}>")
    return "\n".join([*lines, f"</{root}>\n"])
