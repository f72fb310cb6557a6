"""Submitting a skill again that was withdrawn: the reason in API, command and form, and nothing new."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.management import CommandError, call_command
from django.test import Client

from marketplace.catalog import quarantine_skill, yank_version
from submissions.models import SubmissionEntry
from tests.git_factory import commit, skill_md
from tests.submissions.front_door import repository, skills, submitted_one, worked_off
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
SAID = "The reason given: steals keys"


def withdraw(env: WorkerEnv, how: str) -> None:
    if how == "quarantined":
        quarantine_skill(env, "one", actor="operator", reason="steals keys")
    else:
        yank_version(env, "one", "0.0.1", actor="operator", reason="steals keys")


def post(client: Client, url: str) -> dict[str, Any]:
    answer: dict[str, Any] = client.post(
        "/api/v1/submissions", {"repoUrl": url}, content_type="application/json"
    ).json()
    return answer


@pytest.mark.parametrize("how", ["quarantined", "yanked"])
def test_the_same_content_of_a_withdrawn_skill_is_answered_with_the_reason(
    client: Client, env: WorkerEnv, tmp_path: Path, how: str
) -> None:
    url = repository(tmp_path, skills("one"))
    submission = async_to_sync(submitted_one)(env, url)
    async_to_sync(worked_off)(env, submission)
    withdraw(env, how)

    answer = post(client, url)
    assert (answer["outcome"], answer["blocked"]) == ("withdrawn", True)
    assert SAID in answer["reason"]
    printed = io.StringIO()
    with pytest.raises(CommandError, match="not submitted"):
        call_command("submit", url, stdout=printed)
    assert SAID in printed.getvalue()
    shown = client.get(f"/submissions/{submission.id}").content.decode()
    assert SAID in shown
    assert SAID in client.get(f"/api/v1/submissions/{submission.id}").json()["withdrawn"]
    assert SubmissionEntry.objects.count() == 1


def test_new_content_of_a_yanked_version_is_taken_and_of_a_quarantined_skill_is_not(
    client: Client, env: WorkerEnv, tmp_path: Path
) -> None:
    url = repository(tmp_path, skills("one"))
    async_to_sync(worked_off)(env, async_to_sync(submitted_one)(env, url))
    withdraw(env, "yanked")
    commit(tmp_path / "repository.git", {"one/SKILL.md": skill_md("one", "Mended.")})
    assert post(client, url)["outcome"] == "created"
    async_to_sync(worked_off)(env, async_to_sync(submitted_one)(env, url))
    withdraw(env, "quarantined")
    commit(tmp_path / "repository.git", {"one/SKILL.md": skill_md("one", "Mended again.")})
    assert post(client, url)["outcome"] == "withdrawn"
