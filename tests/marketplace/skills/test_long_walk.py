"""A list that is walked to its end while skills are published holds each skill once, in every order."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db.models import F

from marketplace.models import SkillEntry
from marketplace.models.derived import SearchDocument
from marketplace.search.documents import FIELDS, position_of
from marketplace.skills.filters import SkillFilters
from marketplace.skills.listing import SORTS, list_skills
from tests.marketplace.factories import publish_example, write_entries
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db
ROWS = 1_000


def test_each_of_a_thousand_skills_is_met_once_while_others_are_published(env: WorkerEnv) -> None:
    write_entries(env, ROWS, dated=True)
    # Of equal values, the row's number decides the order.
    SkillEntry.objects.update(downloads=F("pk") % 7, recent_downloads=F("pk") % 3)
    # The order by relevance is that of a search, which is walked below.
    for sort in SORTS.keys() - {"relevance"}:
        early = set(SkillEntry.objects.values_list("slug", flat=True))
        seen: Counter[str] = Counter()
        page = list_skills(env, sort=sort, limit=200)
        while page.next_cursor is not None:
            seen.update(row.slug for row in page.skills)
            publish_example(env, name=f"a-{sort}-{len(seen)}", skill_path=f"a/{sort}/{len(seen)}")
            publish_example(env, name=f"z-{sort}-{len(seen)}", skill_path=f"z/{sort}/{len(seen)}")
            page = list_skills(env, sort=sort, limit=200, cursor=page.next_cursor)
        seen.update(row.slug for row in page.skills)

        assert early <= seen.keys(), sort
        assert set(seen.values()) == {1}, sort


@pytest.mark.parametrize("query", ["alpha", "alphs"], ids=["as typed", "loosened"])
def test_each_hit_of_a_search_is_met_once_while_others_are_published(env: WorkerEnv, query: str) -> None:
    write_entries(env, ROWS)
    rows = SkillEntry.objects.order_by("pk")
    rows.update(downloads=F("pk") % 3)
    documents = []
    for row in rows:
        # Some have the word in their names, some among many others, and what is scored are two hundred of a thousand.
        texts = {"name": row.slug, "description": "alpha " + "beta " * (row.pk % 5)}
        texts |= {"name": f"alpha {row.slug}"} if row.pk % 4 == 0 else {}
        empty = dict.fromkeys(FIELDS, "")
        place = position_of(row.pk, row.downloads)
        documents.append(SearchDocument(id=place, namespace=env.name, skill=row, **(empty | texts)))
    SearchDocument.objects.bulk_create(documents)
    early = set(rows.values_list("slug", flat=True))
    seen: Counter[str] = Counter()
    page = list_skills(env, SkillFilters(query=query), limit=90)
    while page.next_cursor is not None:
        seen.update(row.slug for row in page.skills)
        number = len(seen)
        # One that comes first, one among those that are scored, and one that is what was typed.
        publish_example(env, name=f"alpha-{number}", skill_path=f"a/{number}")
        publish_example(env, name=f"alphs-{number}", description="alpha", skill_path=f"b/{number}")
        page = list_skills(env, SkillFilters(query=query), limit=90, cursor=page.next_cursor)
    seen.update(row.slug for row in page.skills)

    assert seen.keys() == early
    assert set(seen.values()) == {1}
    # A search that begins now finds them.
    assert list_skills(env, SkillFilters(query="alphs"), limit=5).skills[0].slug.startswith("alphs")
