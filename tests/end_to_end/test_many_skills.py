"""Invented skills: a registry of them looks like one that was filled through the queue; real ones stay apart."""

from __future__ import annotations

import json

import pytest
from asgiref.sync import sync_to_async
from django.core.management import CommandError, call_command
from django.test import Client

from marketplace.models import SkillEntry, SkillVersion
from submissions.models import SubmissionEntry
from submissions.recovery.verify_store import verify_store
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)


def load(*arguments: str) -> None:
    call_command("load_demo", "--json", "--environment", "default", *arguments)


def test_invented_skills_are_consistent_and_can_be_read_and_fetched(
    env: WorkerEnv, capsys: pytest.CaptureFixture[str]
) -> None:
    load("--skills", "60")
    [told] = json.loads(capsys.readouterr().out)["environments"]
    assert told["invented"] == {
        "skills": 60,
        "versions": SkillVersion.objects.count(),
        "submissions": SubmissionEntry.objects.count(),
    }
    assert told["invented"]["submissions"] > told["invented"]["versions"] >= 60

    row = SkillEntry.objects.order_by("pk")[7]
    for address in (
        f"/skills/{row.slug}",
        f"/skills/{row.slug}/files/SKILL.md",
        f"/publishers/{row.publisher_handle}",
        f"/api/v1/download?slug={row.slug}",
        f"/submissions/{SkillVersion.objects.filter(skill=row)[0].submission_id}",
        f"/skills?q={row.slug}",
        "/queue",
    ):
        answer = Client().get(address)
        assert answer.status_code == 200, address


async def test_nothing_is_wrong_in_a_store_of_invented_skills(env: WorkerEnv) -> None:
    # On a thread, because a command opens an event loop of its own.
    await sync_to_async(load)("--skills", "12")
    assert (await verify_store(env)).problems == []


def test_more_of_them_come_beside_those_that_are_there() -> None:
    load("--skills", "5")
    load("--skills", "5")
    assert SkillEntry.objects.count() == 10


def test_they_are_refused_among_real_skills_unless_that_is_asked_for(env: WorkerEnv) -> None:
    publish_example(env)
    with pytest.raises(CommandError, match="Nothing was written"):
        load("--skills", "5")
    assert SkillEntry.objects.count() == 1
    load("--skills", "5", "--among-real")
    assert SkillEntry.objects.count() == 6


@pytest.mark.parametrize("number", ["0", "-1", "many", "1000001"])
def test_a_number_that_is_none_is_refused(number: str) -> None:
    with pytest.raises(CommandError, match="no number"):
        load("--skills", number)
