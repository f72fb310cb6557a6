"""The store that is measured: entries of about one kilobyte, some of them stuck, stored in random order."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from typing import Any

from django.core.management import call_command
from django.db import connection

from marketplace.models import SKILL_PREFIX, SkillEntry
from marketplace.records import SkillRecord
from submissions.models import SUBMISSION_PREFIX, SubmissionEntry

STUCK = 500
LONG_AGO = "2026-01-01T00:00:00.000Z"


def key_of(number: int) -> str:
    """Return the key of an entry."""
    return f"{SUBMISSION_PREFIX}sub_{number:032x}"


def value_of(number: int, *, stuck: bool) -> dict[str, Any]:
    """Return a submission of about one kilobyte."""
    return {
        "id": f"sub_{number:032x}",
        "state": "RECEIVED" if stuck else "PUBLISHED",
        "identity": f"{number:064x}",
        "repoUrl": f"https://git.example.com/owner-{number % 1000}/skills",
        "skillName": f"skill-{number}",
        "skillPath": f"skills/skill-{number}",
        "createdAt": LONG_AGO,
        "updatedAt": LONG_AGO,
        "attempts": 1,
        "verdict": {"word": "clear", "engines": [{"name": "skilltotal", "version": "0.84.0", "findings": []}]},
        "reason": "A submission says why it is where it is, in a sentence or two. " * 8,
    }


def skill_of(number: int) -> SkillRecord:
    """Return a published skill of about one kilobyte."""
    return SkillRecord(
        slug=f"skill-{number:06}",
        name=f"skill-{number:06}",
        description="What the skill does and when it is useful, in a sentence or two. " * 5,
        publisher=f"git.example.com/owner-{number % 1000}",
        publisher_handle=f"owner-{number % 1000}",
        repo_url=f"https://git.example.com/owner-{number % 1000}/skills",
        identity=f"{number:064x}",
        latest_version="1.0.0",
        content_hash=f"{number:064x}",
        verdict="clear",
        published_at=LONG_AGO,
        updated_at=LONG_AGO,
    )


def _shuffled(entries: int) -> list[int]:
    # Keys are random in operation, so rows are not stored in the order of their keys.
    numbers = list(range(entries))
    random.Random(7).shuffle(numbers)
    return numbers


def fill_skills(entries: int) -> None:
    """Write ``entries`` published skills beside the submissions of ``fill``."""
    numbers = _shuffled(entries)
    for start in range(0, entries, 2000):
        SkillEntry.objects.bulk_create(
            SkillEntry(namespace="default", key=f"{SKILL_PREFIX}{skill.slug}", value=json.dumps(skill.to_value()))
            for skill in map(skill_of, numbers[start : start + 2000])
        )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def fill(entries: int) -> list[str]:
    """Make the tables, write ``entries`` submissions of which 500 are stuck, and return their keys in order."""
    call_command("migrate", verbosity=0)
    numbers = _shuffled(entries)
    stuck = set(numbers[:STUCK])
    for start in range(0, entries, 2000):
        SubmissionEntry.objects.bulk_create(
            SubmissionEntry(
                namespace="default", key=key_of(number), value=json.dumps(value_of(number, stuck=number in stuck))
            )
            for number in numbers[start : start + 2000]
        )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    assert abs(len(SubmissionEntry.objects.get(key=key_of(0)).value) - 1024) < 200
    assert datetime.now(UTC).isoformat() > LONG_AGO
    return [key_of(number) for number in range(entries)]
