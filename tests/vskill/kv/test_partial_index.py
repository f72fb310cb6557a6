"""A question that a partial index answers is answered by it, and not by reading the whole table."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.db.models import Q

from submissions.models import SubmissionEntry
from submissions.states import STUCK_STATES
from vskill.kv.models import KVEntry
from vskill.kv.partial_index import InPartialIndex


@pytest.mark.django_db
class TestStuckIndex:
    """The index over the states in which a submission can be stuck."""

    @pytest.fixture(autouse=True)
    def _entries(self) -> None:
        for number, state in enumerate(["RECEIVED", "PUBLISHED", "TIER1_SCANNING", "it's 100%", ""]):
            value = {"state": state, "updatedAt": "2026-01-01T00:00:00Z", "identity": str(number)}
            SubmissionEntry.objects.create(namespace="default", key=f"sub:{number}", value=json.dumps(value))

    def test_it_holds_the_same_rows_as_its_condition(self) -> None:
        rows = SubmissionEntry.objects.order_by("key")
        inside = rows.filter(InPartialIndex(SubmissionEntry, "submission_stuck"))
        assert list(inside) == list(rows.filter(state__in=STUCK_STATES))
        assert len(inside) == 2
        assert len(rows.filter(InPartialIndex(SubmissionEntry, "submission_stuck"), key__gt="sub:0")) == 1
        assert rows.exclude(InPartialIndex(SubmissionEntry, "submission_stuck")).count() == 3

    def test_the_database_uses_an_index_that_its_condition_opens(self) -> None:
        rows = SubmissionEntry.objects.filter(InPartialIndex(SubmissionEntry, "submission_stuck"), namespace="default")
        asked = rows.filter(state_at__lt="2027-01-01T00:00:00Z")
        if connection.vendor == "sqlite":
            assert "submission_stuck" in asked.explain()
            return
        with connection.cursor() as cursor:
            # So few rows are read faster without any index, and which one of several is a matter of luck.
            cursor.execute("SET LOCAL enable_seqscan = off")
        assert "Index Scan" in asked.explain()

    def test_an_index_over_everything_is_no_partial_one(self) -> None:
        whole = next(index.name for index in SubmissionEntry._meta.indexes if index.condition is None)
        with pytest.raises(ValueError, match="no partial index"):
            InPartialIndex(SubmissionEntry, whole)

    def test_percent_signs_and_quotes_in_a_condition_reach_the_database_as_they_are(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        index = next(one for one in SubmissionEntry._meta.indexes if one.name == "submission_stuck")
        monkeypatch.setattr(index, "condition", Q(state="it's 100%"))
        rows = SubmissionEntry.objects.filter(InPartialIndex(SubmissionEntry, "submission_stuck"), namespace="default")
        assert [row.key for row in rows] == ["sub:3"]


@pytest.mark.database
def test_a_condition_with_other_values_than_texts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    index = KVEntry._meta.indexes[0]
    monkeypatch.setattr(index, "condition", Q(version=7))
    with pytest.raises(ValueError, match="only texts"):
        str(KVEntry.objects.filter(InPartialIndex(KVEntry, index.name)).query)
