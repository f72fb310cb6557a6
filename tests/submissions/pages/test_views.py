"""The pages of the submissions, as a visitor without scripts uses them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.test import AsyncClient

from marketplace.skills.moderation import quarantine_skill
from submissions.models import QueueMessage, SubmissionEntry
from submissions.queue.pause import pause
from submissions.states import State
from submissions.store.queries import get_submission
from tests.git_factory import git, skill_md
from tests.submissions.factories import make_submission
from tests.submissions.front_door import EVIL, drain, repository, skills, submitted, submitted_one
from vskill.environments import WorkerEnv
from vskill.kv.threads import writers
from vskill.processes.heartbeat import heartbeat

pytestmark = pytest.mark.django_db(transaction=True)


def _listing(page: str) -> str:
    found = re.search(r'name="listing" value="([^"]+)"', page)
    assert found is not None
    return found[1]


async def test_an_address_lists_the_skills_and_the_picked_ones_are_submitted(
    async_client: AsyncClient, tmp_path: Path
) -> None:
    url = repository(tmp_path, {**skills("one", "two"), "broken/SKILL.md": "nothing\n"})
    listed = await async_client.post("/submit", {"repository_url": url})
    page = listed.content.decode()

    assert listed.status_code == 200
    assert "one" in page
    assert "two" in page
    assert re.search(r'value="broken"[^>]* disabled', page)
    assert await SubmissionEntry.objects.acount() == 0

    submitted_ = await async_client.post("/submit", {"listing": _listing(page), "paths": ["one"]})
    entry = await SubmissionEntry.objects.aget()

    assert submitted_.status_code == 302
    assert submitted_["Location"] == f"/submissions/{entry.submission_id}"
    assert entry.skill_path == "one"


async def test_several_picked_skills_lead_to_a_list_of_them(async_client: AsyncClient, tmp_path: Path) -> None:
    url = repository(tmp_path, skills("one", "two"))
    page = (await async_client.post("/submit", {"repository_url": url})).content.decode()
    answer = await async_client.post("/submit", {"listing": _listing(page), "paths": ["one", "two"]})
    queue = await async_client.get(answer["Location"])

    assert answer.status_code == 302
    assert queue.status_code == 200
    assert queue.content.decode().count("/submissions/sub_") == 2


async def test_each_skill_that_is_known_says_where_it_stands(
    async_client: AsyncClient, env: WorkerEnv, tmp_path: Path
) -> None:
    url = repository(tmp_path, {**skills("one"), "key-helper/SKILL.md": EVIL})
    await submitted(env, url)
    await drain(env)
    page = (await async_client.post("/submit", {"repository_url": url})).content.decode()

    assert "Published" in page
    assert "Held for review" in page
    assert 'href="/skills/one"' in page
    assert 'href="/submissions/sub_' in page


@pytest.mark.parametrize(
    ("address", "status", "told"),
    [
        ("", 400, "Enter the address"),
        ("   ", 400, "Enter the address"),
        ("javascript:alert(1)", 422, "address"),
        ("deploy@github.com:owner/name.git", 422, "Try https://github.com/owner/name"),
        ("https://169.254.169.254/latest/meta-data", 422, "public internet"),
        ("https://[::1]/a/b", 422, "public internet"),
        ("<script>alert(1)</script>", 422, "not a repository address"),
    ],
)
async def test_a_bad_address_is_explained_beside_the_field(
    async_client: AsyncClient, address: str, status: int, told: str
) -> None:
    response = await async_client.post("/submit", {"repository_url": address})
    page = response.content.decode()

    assert response.status_code == status
    assert told in page
    assert "<script>alert" not in page


async def test_nothing_picked_and_a_forged_list_are_refused(async_client: AsyncClient, tmp_path: Path) -> None:
    url = repository(tmp_path, skills("one"))
    page = (await async_client.post("/submit", {"repository_url": url})).content.decode()
    nothing = await async_client.post("/submit", {"listing": _listing(page), "repository_url": url})
    forged = await async_client.post("/submit", {"listing": "forged", "repository_url": url, "paths": ["one"]})

    assert nothing.status_code == forged.status_code == 400
    assert "Pick at least one skill" in nothing.content.decode()
    assert "enter the address again" in forged.content.decode()
    assert await QueueMessage.objects.acount() == 0


async def test_the_page_of_a_submission_shows_its_place_and_then_its_decision(
    async_client: AsyncClient, env: WorkerEnv, tmp_path: Path
) -> None:
    submission = await submitted_one(env, repository(tmp_path, {"key-helper/SKILL.md": EVIL}))
    waiting = (await async_client.get(f"/submissions/{submission.id}")).content.decode()
    await drain(env)
    decided = (await async_client.get(f"/submissions/{submission.id}")).content.decode()

    assert "place in the queue" in waiting
    assert 'hx-trigger="changed, every 2s"' in waiting
    assert "Held for review" in decided
    assert "SKILL.md:" in decided or "line" in decided
    assert "hx-trigger" not in decided


async def test_a_published_submission_leads_to_the_skill(
    async_client: AsyncClient, env: WorkerEnv, tmp_path: Path
) -> None:
    submission = await submitted_one(env, repository(tmp_path, skills("one")))
    await drain(env)
    page = (await async_client.get(f"/submissions/{submission.id}")).content.decode()

    assert 'href="/skills/one"' in page
    assert (await get_submission(env, submission.id)).text("slug") == "one"


async def test_the_fragment_of_a_page_is_a_part_of_it(
    async_client: AsyncClient, env: WorkerEnv, tmp_path: Path
) -> None:
    submission = await submitted_one(env, repository(tmp_path, skills("one")))
    for address in (f"/submissions/{submission.id}", "/queue"):
        fragment = (await async_client.get(address, {"fragment": "1"})).content.decode()
        assert "<html" not in fragment
        assert "<html" in (await async_client.get(address)).content.decode()


async def test_the_queue_counts_what_is_there_and_says_when_it_stands_still(
    async_client: AsyncClient, env: WorkerEnv, tmp_path: Path
) -> None:
    await submitted(env, repository(tmp_path, skills("one")))
    without = (await async_client.get("/queue")).content.decode()
    await writers.run(pause, env, who="operator", why="a new engine is being installed")
    async with heartbeat("consumer", [env]):
        paused = (await async_client.get("/queue")).content.decode()

    assert "No worker has reported" in without
    assert "No worker has reported" not in paused
    assert "a new engine is being installed" in paused
    assert "one" in paused


async def test_each_count_of_the_queue_leads_to_what_it_counts(async_client: AsyncClient, env: WorkerEnv) -> None:
    made = {
        "held": await writers.run(make_submission, env, State.ON_HOLD, skillName="waits-for-a-person"),
        "published": await writers.run(make_submission, env, State.PUBLISHED, skillName="is-published"),
    }
    page = (await async_client.get("/queue")).content.decode()
    # Neither waits, so neither stands among what does.
    assert not any(f"/submissions/{one.id}" in page for one in made.values())
    for group, one in made.items():
        assert f'href="?group={group}"' in page
        shown = (await async_client.get("/queue", {"group": group})).content.decode()
        assert f"/submissions/{one.id}" in shown
        [other] = [other for name, other in made.items() if name != group]
        assert f"/submissions/{other.id}" not in shown
        assert "the newest first" in shown
        assert f"group={group}&amp;fragment=1" in shown
    assert "No submission is in this state" in (await async_client.get("/queue?group=blocked")).content.decode()


@pytest.mark.parametrize("group", ["waiting", "x" * 2000, "%ED%A0%80", "<b>"])
async def test_a_group_that_there_is_not_is_400_with_those_that_there_are(
    async_client: AsyncClient, group: str
) -> None:
    answer = await async_client.get(f"/queue?group={group}")
    assert answer.status_code == 400
    assert "active, published, rejected, held, blocked" in answer.content.decode()


@pytest.mark.parametrize("submission_id", ["sub_nothing", "%00", "a%00b", "%ED%A0%80", "x" * 5000])
async def test_an_unknown_submission_is_404(async_client: AsyncClient, submission_id: str) -> None:
    assert (await async_client.get(f"/submissions/{submission_id}")).status_code == 404


async def test_a_repository_that_nobody_can_have_submitted_has_no_queue(async_client: AsyncClient) -> None:
    assert (await async_client.get("/queue?repository=%EF%BF%BD")).status_code == 200


async def test_a_folder_whose_name_is_no_text_is_listed_with_its_problem(
    async_client: AsyncClient, tmp_path: Path
) -> None:
    files = {"\udce9t\x1b[31m/SKILL.md": skill_md("summer"), **skills("one")}

    listed = await async_client.post("/submit", {"repository_url": repository(tmp_path, files)})

    assert listed.status_code == 200
    page = listed.content.decode()
    assert r"\u{dce9}t\u{1b}[31m" in page
    assert page.count(" disabled>") == 1


async def test_pages_answer_head_and_refuse_other_methods(async_client: AsyncClient) -> None:
    assert (await async_client.head("/queue")).status_code == 200
    assert (await async_client.delete("/queue")).status_code == 405
    assert (await async_client.put("/submit")).status_code == 405


async def test_what_was_decided_last_is_shown_and_what_waits_longest_comes_first(
    async_client: AsyncClient, env: WorkerEnv, tmp_path: Path
) -> None:
    await submitted(env, repository(tmp_path, skills("first-one"), "a"))
    await drain(env)
    await submitted(env, repository(tmp_path, skills("second-one"), "b"))
    await submitted(env, repository(tmp_path, skills("third-one"), "c"))
    page = (await async_client.get("/queue")).content.decode()
    waiting, decided = page.split("Decided last")

    assert "first-one" in decided
    assert "first-one" not in waiting
    assert waiting.index("second-one") < waiting.index("third-one")


async def test_a_skill_that_was_withdrawn_is_no_longer_linked_to(
    async_client: AsyncClient, env: WorkerEnv, tmp_path: Path
) -> None:
    url = repository(tmp_path, skills("one"))
    submission = await submitted_one(env, url)
    await drain(env)
    await writers.run(quarantine_skill, env, "one", actor="operator", reason="reported")
    page = (await async_client.get(f"/submissions/{submission.id}")).content.decode()
    listed = (await async_client.post("/submit", {"repository_url": url})).content.decode()
    again = await async_client.post("/submit", {"listing": _listing(listed), "repository_url": url, "paths": ["one"]})

    assert "have since withdrawn" in page
    assert "/skills/one" not in page
    assert f"/submissions/{submission.id}" in listed
    assert again.status_code == 422
    assert "is quarantined" in again.content.decode()
    assert "The reason given: reported" in again.content.decode()
    assert "The reason given: reported" in page


async def test_the_address_that_was_typed_is_kept_with_its_branch(async_client: AsyncClient, tmp_path: Path) -> None:
    url = repository(tmp_path, skills("one"))
    git(tmp_path / "repository.git", "branch", "feature/x")
    page = (await async_client.post("/submit", {"repository_url": f"{url}#feature/x"})).content.decode()

    assert "on branch feature/x" in page
    assert page.count(f'value="{url}#feature/x"') == 2
