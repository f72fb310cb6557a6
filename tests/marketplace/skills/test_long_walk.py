"""A list that is walked to its end while skills are published holds each skill once, in every order."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db.models import F

from marketplace.models import SkillEntry
from marketplace.skills.listing import SORTS, list_skills
from tests.marketplace.factories import publish_example, write_entries
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db
ROWS = 1_000


def test_each_of_a_thousand_skills_is_met_once_while_others_are_published(env: WorkerEnv) -> None:
    write_entries(env, ROWS, dated=True)
    # Of equal values, the row's number decides the order.
    SkillEntry.objects.update(downloads=F("pk") % 7, recent_downloads=F("pk") % 3)
    # Words are searched for in what has words, which these rows have not.
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
