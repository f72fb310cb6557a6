"""The history of a version's scans: one row for what stays the same, a bounded number of rows, and a picture."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from importlib import import_module
from itertools import pairwise
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import CASCADE
from django.test import Client

from marketplace.models import LaterScan, PastScan, SkillVersion
from marketplace.pictures.timeline import WIDTH, places
from marketplace.skills.scan_history import MOST_KEPT, ScanSeen, note_scan, scan_history, unnoted_scans
from tests.marketplace.pages.page_factory import finding, publish
from vskill.environments import WorkerEnv

START = datetime(2030, 1, 1, tzinfo=UTC)


def noted(env: WorkerEnv, number: int, *, days: int, outcome: str = "clear", engine: str = "1", **found: Any) -> None:
    """Note a scan of the version with a number, some days after the start."""
    at = START + timedelta(days=days)
    findings: Mapping[str, int] = found.get("findings", {})
    engines = [{"name": "vskill", "version": engine, "status": "complete"}]
    note_scan(env, number, ScanSeen(found.get("scanner", ""), outcome, engines, findings, at, at))


def version_of(env: WorkerEnv, name: str = "release-notes", **how: Any) -> SkillVersion:
    """Publish a skill and return its version."""
    publish(env, name, **how)
    return SkillVersion.objects.select_related("skill").get(skill__slug=name)


@pytest.mark.django_db
def test_the_same_again_moves_when_it_was_last_and_anything_else_is_a_row_of_its_own(env: WorkerEnv) -> None:
    version = version_of(env)
    for day in (1, 2, 3):
        noted(env, version.pk, days=day)
    noted(env, version.pk, days=4, engine="2")
    noted(env, version.pk, days=5, engine="2", outcome="held", findings={"high": 1})
    noted(env, version.pk, days=6, engine="2", outcome="held", findings={"high": 2})
    noted(env, version.pk, days=7)
    rows = PastScan.objects.order_by("pk").values_list("outcome", "times", "first_at__day", "last_at__day")
    assert list(rows) == [
        ("clear", 3, 2, 4),
        ("clear", 1, 5, 5),
        ("held", 1, 6, 6),
        ("held", 1, 7, 7),
        ("clear", 1, 8, 8),
    ]
    shown = scan_history(env, version)
    assert [one.times for one in shown] == [1, 1, 1, 1, 3, 1]
    assert shown[-1].published
    assert shown[-1].first_at == version.created_at


@pytest.mark.django_db
def test_a_history_has_a_bounded_number_of_rows_for_each_scanner_and_goes_with_its_version(env: WorkerEnv) -> None:
    version = version_of(env)
    noted(env, version.pk, days=0, scanner="one", outcome="COMPLETED")
    for number in range(MOST_KEPT + 5):
        noted(env, version.pk, days=number, engine=str(number))
    own = PastScan.objects.filter(scanner="")
    assert own.count() == MOST_KEPT
    assert {row.engines[0]["version"] for row in own} == {str(number) for number in range(5, MOST_KEPT + 5)}
    assert PastScan.objects.filter(scanner="one").count() == 1
    assert PastScan._meta.get_field("version").remote_field.on_delete is CASCADE


@pytest.mark.django_db(transaction=True)
def test_page_and_api_show_each_scan_and_what_was_said_of_the_same_content_elsewhere(
    env: WorkerEnv, client: Client
) -> None:
    findings = (finding(severity="high"), finding(kind="coverage", severity="info"))
    version = version_of(env, findings=findings)
    copied = version_of(env, "copied-notes", repo_url="https://github.com/other/skills")
    SkillVersion.objects.filter(pk=copied.pk).update(content_hash=version.content_hash)
    noted(env, version.pk, days=1)
    noted(env, version.pk, days=9)
    noted(env, version.pk, days=20, outcome="held_high", findings={"critical": 1, "low": 3})
    noted(env, version.pk, days=30, outcome="inconclusive", engine="2")
    noted(env, copied.pk, days=25, scanner="semgrep", outcome="COMPLETED", findings={"medium": 1})
    noted(env, copied.pk, days=26, outcome="refused")

    told = client.get("/api/v1/skills/release-notes/scans").json()
    assert told["contentHash"] == version.content_hash
    assert [(one["scanner"], one["outcome"], one["times"], one["findings"]) for one in told["items"]] == [
        (None, "inconclusive", 1, {}),
        ("semgrep", "COMPLETED", 1, {"medium": 1}),
        (None, "held_high", 1, {"critical": 1, "low": 3}),
        (None, "clear", 2, {}),
        (None, "clear", 1, {"high": 1}),
    ]
    assert told["items"][3]["firstAt"] == "2030-01-02T00:00:00.000Z"
    assert told["items"][3]["lastAt"] == "2030-01-10T00:00:00.000Z"
    page = client.get("/skills/release-notes/scan").content.decode()
    picture = re.search(r'<svg class="timeline-picture" .*?</svg>', page, re.DOTALL)
    assert picture is not None
    assert [picture[0].count(f'<path class="{shape}"') for shape in ("circle", "triangle", "square")] == [2, 2, 1]
    assert "<title>21 Jan 2030: Held, strong findings, 1 critical, 3 low</title>" in picture[0]
    assert "5 outcomes" in page
    assert "the same 2 times, last" in page
    assert ">semgrep</text>" in picture[0]


@pytest.mark.django_db(transaction=True)
def test_a_scan_that_an_earlier_release_recorded_is_shown_and_the_migration_begins_with_it(
    env: WorkerEnv, client: Client
) -> None:
    version = version_of(env)
    fields: dict[str, Any] = {
        "verdict": "held",
        "findings": [finding(severity="high")],
        "engines": [{"name": "vskill"}],
    }
    later = LaterScan.objects.create(namespace=env.name, version=version, scan_key="key", **fields)
    before = client.get("/api/v1/skills/release-notes/scans").json()
    assert [one["outcome"] for one in before["items"]] == ["held", "clear"]
    assert list(unnoted_scans(env)) == [later]
    migration: Any = import_module("marketplace.migrations.0016_past_scans_and_activity")
    migration.fill_scans(apps, connection.schema_editor())
    assert not unnoted_scans(env).exists()
    assert client.get("/api/v1/skills/release-notes/scans").json() == before


def test_marks_of_one_moment_stand_side_by_side_within_the_picture() -> None:
    start, end = START, START + timedelta(days=100)
    moments = [start, start, start + timedelta(days=50), end, end, end + timedelta(days=1)]
    found = places(moments, start, end)
    assert all(later - earlier >= 11 for earlier, later in pairwise(found))
    assert found[0] > 0
    assert found[-1] < WIDTH
    assert found[2] == pytest.approx(WIDTH / 2)
    assert places([start], start, start) == [found[0]]
