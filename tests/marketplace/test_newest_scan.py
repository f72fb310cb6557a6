"""Visitors and clients are shown the newest scan of a version, and that it is not the one that it was published by."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from marketplace.models import LaterScan, SkillVersion
from tests.marketplace.pages.page_factory import finding, publish
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
OLD = finding(title="An old finding", ruleId="old", file="old.sh", line=1)
NEW = finding(title="A new finding", ruleId="new", file="new.sh", line=1)
FILES = {"old.sh": b"echo old\n", "new.sh": b"echo new\n"}


def scanned_again(env: WorkerEnv, *findings: dict[str, Any], **fields: Any) -> LaterScan:
    """Publish a skill with the old finding, and keep a later scan of it."""
    publish(env, files=FILES, findings=(OLD,), verdict="clear")
    values: dict[str, Any] = {
        "verdict": "notes",
        "verdict_summary": "There is something to read.",
        "engines": [{"name": "vskill", "version": "8", "status": "complete"}],
        "findings": list(findings),
        **fields,
    }
    version = SkillVersion.objects.get()
    later: LaterScan = LaterScan.objects.create(namespace=env.name, version=version, scan_key="key", **values)
    return later


def text(client: Client, path: str) -> str:
    page = client.get(path).content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.partition("<main")[2]))


def test_the_page_of_a_skill_has_the_newest_findings_and_says_by_whom_it_was_checked_again(
    env: WorkerEnv, client: Client
) -> None:
    scanned_again(env, NEW)
    shown = text(client, "/skills/release-notes")
    assert "A new finding" in shown
    assert "An old finding" not in shown
    assert "That is from its publication. Scanned again just now by vskill 8: Checked, with notes." in shown
    row = next(one for one in shown.split("Path Checks")[1].split(" B ") if "new.sh" in one)
    assert "1 finding" in row
    assert "A new finding" in text(client, "/skills/release-notes/files/new.sh")
    assert "An old finding" not in text(client, "/skills/release-notes/files/old.sh")


def test_the_report_has_both_scans_the_newest_first(env: WorkerEnv, client: Client) -> None:
    scanned_again(env, NEW)
    shown = text(client, "/skills/release-notes/scan")
    assert "There is something to read." in shown
    order = [shown.index(words) for words in ("Scanned again", "A new finding", "When it was published", "An old find")]
    assert order == sorted(order)


def test_clients_are_told_the_newest_scan_and_its_time(env: WorkerEnv, client: Client) -> None:
    later = scanned_again(env, NEW)
    at = int(later.scanned_at.timestamp() * 1000)
    security = client.get("/api/v1/skills/release-notes/verify").json()["security"]
    assert (security["scannedAgain"], security["scannedAt"], security["scanVerdict"]) == (True, at, "notes")
    assert [one["code"] for one in security["findings"]] == ["new"]
    assert [one["version"] for one in security["engines"]] == ["8"]
    assert security["status"] == "clear"
    stated = client.get("/api/v1/skills/release-notes/moderation").json()["moderation"]
    assert [one["code"] for one in stated["evidence"]] == stated["reasonCodes"] == ["new"]
    assert (stated["engineVersion"], stated["updatedAt"]) == ("vskill 8", at)
    version = SkillVersion.objects.get().version
    told = client.get(f"/api/v1/skills/release-notes/versions/{version}").json()["version"]["security"]
    assert (told["checkedAt"], told["hasWarnings"]) == (at, True)


def test_a_later_scan_that_read_nothing_leaves_what_was_known(env: WorkerEnv, client: Client) -> None:
    scanned_again(env, verdict="inconclusive", verdict_summary="The archive is gone.", engines=[])
    shown = text(client, "/skills/release-notes")
    assert "An old finding" in shown
    assert "without a result: The archive is gone." in shown
    security = client.get("/api/v1/skills/release-notes/verify").json()["security"]
    assert not security["scannedAgain"]
    assert [one["code"] for one in security["findings"]] == ["old"]


def test_a_skill_that_was_scanned_once_says_nothing_of_another_scan(env: WorkerEnv, client: Client) -> None:
    publish(env, files=FILES, findings=(OLD,))
    for below in ("", "/scan"):
        shown = text(client, f"/skills/release-notes{below}")
        assert "An old finding" in shown
        assert "Scanned again" not in shown
        assert "When it was published" not in shown
