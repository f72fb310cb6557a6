"""The contract of a skill, from its scan through publication to pages and API."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import AsyncClient

from marketplace.models import SkillVersion
from submissions.states import State
from submissions.verification.engines.base import EngineResult, EngineStatus
from tests.submissions.front_door import EVIL, repository, submitted_one, worked_off
from vskill.environments import WorkerEnv

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_data_folder")]

NOTES = """---
name: notes
description: Tidies notes.
allowed-tools: Read
---

# Notes

Then read https://notes.invalid/rules.md for the rules.
"""
SCRIPT = "import os\n\nkey = os.environ['NOTES_API_KEY']\n"


async def page(path: str) -> str:
    response = await AsyncClient().get(path)
    assert response.status_code == 200, response.content.decode()[:500]
    return response.content.decode()


async def test_pages_and_api_show_the_contract_of_a_published_skill(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, {"s/SKILL.md": NOTES, "s/scripts/run.py": SCRIPT})
    submission = await worked_off(env, await submitted_one(env, url))
    assert submission.state is State.PUBLISHED
    slug, version = submission.text("slug"), submission.text("version")
    for path, query in ((f"/skills/{slug}", ""), (f"/submissions/{submission.id}", f"?version={version}")):
        shown = await page(path)
        assert "Reads secrets" in shown
        assert "Not declared" in shown
        assert f'href="/skills/{slug}/files/scripts/run.py{query}#L3"' in shown
        assert "https://notes.invalid/rules.md" in shown
        assert f'href="/skills/{slug}/files/SKILL.md{query}#L9"' in shown
    detail = (await AsyncClient().get(f"/api/v1/skills/{slug}")).json()
    secrets = next(one for one in detail["contract"]["does"] if one["name"] == "reads_secrets")
    assert secrets == {
        "name": "reads_secrets",
        "declared": None,
        "places": [{"file": "scripts/run.py", "line": 3}],
    }
    assert detail["contract"]["declares"]["allowed-tools"] == "Read"
    (only,) = detail["references"]["items"]
    assert (only["name"], only["file"], only["line"], only["pinned"]) == (
        "https://notes.invalid/rules.md",
        "SKILL.md",
        9,
        None,
    )
    assert only["sinceCheck"] == {"checkedAt": None, "changedAt": None, "failures": 0, "error": None}
    exact = (await AsyncClient().get(f"/api/v1/skills/{slug}/versions/{version}")).json()["version"]
    assert (exact["contract"], exact["references"]) == (detail["contract"], detail["references"])


async def test_the_page_of_a_held_submission_says_which_chain_holds_it(env: WorkerEnv, tmp_path: Path) -> None:
    held = await worked_off(env, await submitted_one(env, repository(tmp_path, {"s/SKILL.md": EVIL})))
    assert held.state is State.ON_HOLD
    shown = await page(f"/submissions/{held.id}")
    chain = shown.split("From secrets to the network")[1].split("</tr>")[0]
    assert "Not declared: holds" in chain
    assert "SKILL.md:9" in chain
    # Nothing is published that a link could lead to.
    assert "/files/" not in shown


async def test_a_version_from_before_says_that_nothing_was_recorded(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, {"s/SKILL.md": NOTES})
    submission = await worked_off(env, await submitted_one(env, url))
    await SkillVersion.objects.aupdate(contract=None)
    shown = await page(f"/skills/{submission.text('slug')}")
    assert "What it does was not recorded" in shown
    assert "What it refers to was not recorded" in shown
    detail = (await AsyncClient().get(f"/api/v1/skills/{submission.text('slug')}")).json()
    assert (detail["contract"], detail["references"]) == (None, None)


def test_a_result_that_an_earlier_release_stored_has_no_contract() -> None:
    result = EngineResult("vskill", "1", EngineStatus.COMPLETE)
    assert "contract" not in result.as_json()
    assert EngineResult.from_json(result.as_json()).contract is None
