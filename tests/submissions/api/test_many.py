"""Many skills by form, API and command: listed page by page, submitted as one job, followed and stopped."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import AsyncClient

from submissions.jobs.records import JobState, get_job
from submissions.jobs.work import AT_ONCE, run_job, step
from submissions.models import QueueMessage, SubmissionEntry
from submissions.states import State
from tests.git_factory import skill_md
from tests.loop_steps import loop_steps
from tests.submissions.commands.run import run
from tests.submissions.front_door import drain, repository, skills
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry

pytestmark = pytest.mark.django_db(transaction=True)
COUNT = AT_ONCE + 20


def many(folder: Path) -> str:
    paths = [f"skills/a/s{number:03}" for number in range(COUNT - 5)]
    paths += [f"skills/b/t{number:03}" for number in range(5)]
    return repository(folder, {f"{path}/SKILL.md": skill_md(path.rpartition("/")[2]) for path in paths})


def hidden(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None
    return unescape(found[1])


def link(page: str, rel: str) -> str:
    found = re.search(rf'href="([^"]+)" rel="{rel}"', page)
    assert found is not None
    return unescape(found[1])


async def call(client: AsyncClient, address: str, **body: str) -> tuple[int, Any]:
    answer = await client.post(address, json.dumps(body), content_type="application/json")
    return answer.status_code, json.loads(answer.content)


class TestForm:
    """As somebody without scripts uses it: links, forms and nothing else."""

    async def test_pages_are_links_and_the_last_one_says_so(self, async_client: AsyncClient, tmp_path: Path) -> None:
        url = many(tmp_path)
        first = (await async_client.post("/submit", {"repository_url": url})).content.decode()
        second = (await async_client.get(link(first, "next"))).content.decode()

        assert f"{COUNT} skills found" in first
        assert first.count('name="paths"') == 50
        assert second.count('name="paths"') == COUNT - 50
        assert "That is all" in second
        assert set(re.findall(r'name="paths" value="([^"]+)"', first + second)) == {
            *(f"skills/a/s{number:03}" for number in range(COUNT - 5)),
            *(f"skills/b/t{number:03}" for number in range(5)),
        }
        assert (await async_client.get(link(second, "prev"))).content.decode().count('name="paths"') == 50

    async def test_a_folder_and_words_are_searched_and_the_matches_submitted(
        self, async_client: AsyncClient, tmp_path: Path
    ) -> None:
        page = (await async_client.post("/submit", {"repository_url": many(tmp_path)})).content.decode()
        listing = hidden(page, "listing")
        assert "skills/b (5)" in page
        narrowed = (await async_client.get("/submit", {"listing": listing, "folder": "skills/b", "q": "T00"})).content
        assert narrowed.decode().count('name="paths"') == 5
        nothing = (await async_client.get("/submit", {"listing": listing, "q": "absent"})).content.decode()
        assert "No skill matches" in nothing

        answer = await async_client.post("/submit", {"listing": listing, "folder": "skills/b", "q": "", "all": "1"})

        assert answer.status_code == 302
        assert await SubmissionEntry.objects.acount() == 5

    async def test_all_of_many_are_one_job_with_a_page_that_stops_it(
        self, async_client: AsyncClient, env: WorkerEnv, tmp_path: Path
    ) -> None:
        page = (await async_client.post("/submit", {"repository_url": many(tmp_path)})).content.decode()
        answer = await async_client.post("/submit", {"listing": hidden(page, "listing"), "all": "1"})
        address = answer["Location"]
        job_id = re.findall(r"/jobs/(job_\w+)", address)[0]
        before = (await async_client.get(address)).content.decode()
        await step(env, job_id)
        half = (await async_client.get(f"{address}&fragment=1")).content.decode()

        assert f"<b>0 of {COUNT}</b>" in before
        assert "<b>25 of 70</b>" in half
        assert "<html" not in half
        assert half.count("/submissions/sub_") == 25
        stopped = await async_client.post(f"/jobs/{job_id}/stop", {"key": hidden(half, "key")})
        assert stopped.status_code == 302
        await run_job(env, job_id)
        after = (await async_client.get(stopped["Location"])).content.decode()
        assert "It was stopped" in after
        assert "Stop this job" not in after
        assert await SubmissionEntry.objects.filter(state=State.DEQUEUED).acount() == 25

    async def test_whoever_only_has_the_address_cannot_stop_it(
        self, async_client: AsyncClient, env: WorkerEnv, tmp_path: Path
    ) -> None:
        page = (await async_client.post("/submit", {"repository_url": many(tmp_path)})).content.decode()
        answer = await async_client.post("/submit", {"listing": hidden(page, "listing"), "all": "1"})
        job_id = re.findall(r"/jobs/(job_\w+)", answer["Location"])[0]

        for key in ("", "x", "\0"):
            seen = (await async_client.get(f"/jobs/{job_id}", {"key": key})).content.decode()
            assert "Stop this job" not in seen
            await async_client.post(f"/jobs/{job_id}/stop", {"key": key})
        assert (await get_job(env, job_id)).state is JobState.ACCEPTING
        assert (await async_client.get("/jobs/job_absent")).status_code == 404

    async def test_the_chips_of_a_job_show_those_that_stand_alike(
        self, async_client: AsyncClient, env: WorkerEnv, tmp_path: Path
    ) -> None:
        files = {**skills(*(f"s{number:03}" for number in range(AT_ONCE))), "bad/SKILL.md": "x", "good/SKILL.md": ""}
        page = (await async_client.post("/submit", {"repository_url": repository(tmp_path, files)})).content.decode()
        assert f"Submit all {AT_ONCE + 2}" in page
        _, body = await call(async_client, "/api/v1/jobs", repoUrl=repository(tmp_path, files, "again"))
        await run_job(env, body["id"])

        seen = (await async_client.get(f"/jobs/{body['id']}?standing=invalid")).content.decode()

        assert "SKILL.md has no frontmatter" in seen
        assert "/submissions/sub_" not in seen
        for wrong in ("standing=nonsense", "start=x", "colour=red"):
            assert (await async_client.get(f"/jobs/{body['id']}?{wrong}")).status_code == 400

    async def test_a_listing_that_is_gone_is_said_to_be(self, async_client: AsyncClient, tmp_path: Path) -> None:
        page = (await async_client.post("/submit", {"repository_url": many(tmp_path)})).content.decode()
        await KVEntry.objects.all().adelete()
        answer = await async_client.post("/submit", {"listing": hidden(page, "listing"), "all": "1"})

        assert answer.status_code == 400
        assert "enter the address again" in answer.content.decode()
        assert (await async_client.get("/submit?listing=x")).status_code == 400

    async def test_no_step_of_the_loop_looks_at_every_skill(self, async_client: AsyncClient, tmp_path: Path) -> None:
        names = [f"s{number:04}" for number in range(1500)]
        url = repository(tmp_path, {f"{name}/SKILL.md": skill_md(name) for name in names})
        # Everything that a process does once, such as reading the templates.
        await async_client.post("/submit", {"repository_url": repository(tmp_path, skills(*names[:60]), "warm")})

        with loop_steps() as small:
            await async_client.post("/submit", {"repository_url": repository(tmp_path, skills(*names[:60]), "small")})
        with loop_steps() as large:
            await async_client.post("/submit", {"repository_url": url})

        assert large.most_calls < small.most_calls + len(names), large.busiest


class TestApi:
    """The same over the API."""

    async def test_a_listing_is_read_page_by_page(self, async_client: AsyncClient, tmp_path: Path) -> None:
        status, body = await call(async_client, "/api/v1/listings", repoUrl=many(tmp_path))
        seen = [one["skillPath"] for one in body["skills"]]
        assert (status, body["total"], len(seen)) == (201, COUNT, 50)
        assert body["folders"] == [{"path": "skills/a", "skills": COUNT - 5}, {"path": "skills/b", "skills": 5}]
        while body["nextCursor"] is not None:
            page = await async_client.get(
                f"/api/v1/listings/{body['id']}", {"cursor": body["nextCursor"], "limit": "7"}
            )
            body = page.json()
            seen += [one["skillPath"] for one in body["skills"]]

        assert len(seen) == len(set(seen)) == COUNT
        narrowed = await async_client.get(f"/api/v1/listings/{body['id']}", {"folder": "skills/b", "q": "t001"})
        assert [one["skillPath"] for one in narrowed.json()["skills"]] == ["skills/b/t001"]
        assert await SubmissionEntry.objects.acount() == 0

    @pytest.mark.parametrize(
        ("query", "code"),
        [
            ("cursor=x", "invalid_cursor"),
            ("cursor=50", "invalid_cursor"),
            ("limit=x", "bad_request"),
            (f"limit={'9' * 5000}", "bad_request"),
        ],
    )
    async def test_a_cursor_or_a_limit_that_is_none_is_a_bad_request(
        self, async_client: AsyncClient, tmp_path: Path, query: str, code: str
    ) -> None:
        _, body = await call(async_client, "/api/v1/listings", repoUrl=repository(tmp_path, skills("one")))
        answer = await async_client.get(f"/api/v1/listings/{body['id']}?{query}")
        assert answer.status_code == 400
        assert answer.json()["error"] in (code, "bad_request")

    async def test_what_is_unknown_is_not_found(self, async_client: AsyncClient) -> None:
        for address in ("/api/v1/listings/x", "/api/v1/jobs/x", "/api/v1/jobs/%00"):
            assert (await async_client.get(address)).status_code == 404
        for address in ("/api/v1/listings", "/api/v1/jobs"):
            assert (await async_client.get(address)).status_code == 405
            assert (await async_client.post(address, "[", content_type="application/json")).status_code == 400

    async def test_a_repository_of_many_skills_is_accepted_as_a_job(
        self, async_client: AsyncClient, env: WorkerEnv, tmp_path: Path
    ) -> None:
        status, started = await call(async_client, "/api/v1/submissions", repoUrl=many(tmp_path))
        assert (status, started["state"], started["submissions"]) == (202, "accepting", [])
        assert started["statusUrl"].endswith(f"/jobs/{started['job']}")
        await run_job(env, started["job"])

        body = (await async_client.get(f"/api/v1/jobs/{started['job']}")).json()

        assert (body["state"], body["handled"], body["total"]) == ("accepted", COUNT, COUNT)
        assert body["standings"] == {"active": COUNT}
        assert len(body["skills"]) == 50
        rest = await async_client.get(f"/api/v1/jobs/{started['job']}", {"cursor": body["nextCursor"]})
        assert (len(rest.json()["skills"]), rest.json()["nextCursor"]) == (COUNT - 50, None)
        first = await async_client.get(f"/api/v1/submissions/{body['skills'][0]['submissionId']}")
        assert first.json()["skillPath"] == body["skills"][0]["skillPath"]

    async def test_a_folder_is_started_looked_at_and_stopped_with_its_key(
        self, async_client: AsyncClient, env: WorkerEnv, tmp_path: Path
    ) -> None:
        status, started = await call(async_client, "/api/v1/jobs", repoUrl=many(tmp_path), folder="skills/b")
        assert (status, started["total"]) == (202, 5)
        address = f"/api/v1/jobs/{started['id']}/stop"

        assert (await call(async_client, address, stopKey="x"))[0] == 403
        assert (await get_job(env, started["id"])).state is JobState.ACCEPTING
        status, stopped = await call(async_client, address, stopKey=started["stopKey"])
        assert (status, stopped["state"]) == (202, "stopping")
        await drain(env)
        body = (await async_client.get(f"/api/v1/jobs/{started['id']}")).json()
        assert (body["state"], body["standings"], body["finished"]) == ("stopped", {"stopped": 5}, True)


class TestCommand:
    """The same from the command line."""

    def test_many_skills_are_accepted_here_and_followed_and_stopped_by_a_command(self, tmp_path: Path) -> None:
        ended = run("submit", many(tmp_path), "--json")
        job = ended.document
        assert (ended.code, job["state"]) == (0, "accepted"), ended
        assert SubmissionEntry.objects.filter(state=State.RECEIVED).count() == COUNT
        assert QueueMessage.objects.filter(kind="submit_job").count() == 1

        looked = run("job", job["id"], "--json").document
        assert (looked["handled"], len(looked["skills"])) == (COUNT, COUNT)
        assert "70 of 70 handled\n  70 active\n" in run("job", job["id"]).out
        assert run("job", job["id"], "--stop").out.startswith(f"{job['id']}: stopping")

    def test_a_folder_alone_is_listed_and_submitted(self, tmp_path: Path) -> None:
        url = many(tmp_path)
        listed = run("submit", url, "--folder", "skills/b", "--dry-run", "--json").document
        assert [one["skillPath"] for one in listed["skills"]] == [f"skills/b/t{number:03}" for number in range(5)]
        assert SubmissionEntry.objects.count() == 0
        assert run("submit", url, "--folder", "skills/b").code == 0
        assert SubmissionEntry.objects.count() == 5
