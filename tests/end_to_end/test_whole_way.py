"""The main job with no part replaced: a repository is submitted and its skills are published and downloaded."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client

from submissions.demo.repository import build_demo_repository
from tests.end_to_end.journey import (
    WHOLE_WAY,
    Visitor,
    address_of,
    consume,
    get_bytes,
    get_json,
    steps,
    stored,
    submit_by_api,
    zip_address,
)
from tests.git_factory import commit, make_repository, skill_md
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

SCRIPT = "import urllib.request\n\nprint(urllib.request.urlopen('https://example.org').status)\n"
FILES = {
    "skills/hello-skill/SKILL.md": skill_md("hello-skill", "Says hello to whoever asks."),
    "skills/ask-server/SKILL.md": skill_md("ask-server", "Asks a server whether it is there."),
    "skills/ask-server/scripts/ask.py": SCRIPT,
    "README.md": "Two skills.\n",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "skills.git", FILES)


async def test_an_address_pasted_into_the_form_ends_as_published_pages(env: WorkerEnv, repository: Path) -> None:
    visitor = Visitor()
    found = await visitor.ask_for(address_of(repository))
    assert visitor.status == 200
    assert found == ["skills/ask-server", "skills/hello-skill"]
    assert "2 skills found" in visitor.words()
    assert (await stored(env)).submissions == []

    await visitor.pick(found)
    assert visitor.status == 302
    assert (await stored(env)).ends == dict.fromkeys(found, "RECEIVED")
    assert (await stored(env)).messages == 2
    await visitor.open(visitor.location)
    assert "hello-skill" in visitor.words()
    await visitor.open("/queue")
    assert "ask-server" in visitor.words()

    assert await consume(env) == "2 done"
    assert (await stored(env)).ends == dict.fromkeys(found, "PUBLISHED")
    assert (await stored(env)).messages == 0
    await visitor.open("/skills/hello-skill")
    assert visitor.status == 200
    assert "Says hello to whoever asks." in visitor.words()
    await visitor.open("/skills/ask-server/files/scripts/ask.py")
    assert "urllib.request.urlopen" in visitor.words()


async def test_one_skill_picked_alone_leads_to_its_own_status_page(env: WorkerEnv, repository: Path) -> None:
    visitor = Visitor()
    await visitor.ask_for(address_of(repository))
    await visitor.pick(["skills/hello-skill"])
    status_page = visitor.location
    assert status_page.startswith("/submissions/sub_")
    await visitor.open(status_page)
    assert "Waiting" in visitor.words()
    await consume(env)
    await visitor.open(status_page)
    assert "Published" in visitor.words()
    assert "/skills/hello-skill" in visitor.text
    assert (await stored(env)).submissions == [("skills/hello-skill", "PUBLISHED")]


async def test_a_client_of_the_api_follows_its_submission_to_the_archive(env: WorkerEnv, repository: Path) -> None:
    status, answer = await submit_by_api(repoUrl=address_of(repository), skillPath="skills/ask-server")
    assert status == 202
    assert answer["state"] == "RECEIVED"
    own = f"/api/v1/submissions/{answer['id']}"
    assert (await get_json(own))["state"] == "RECEIVED"
    assert answer["statusUrl"].endswith(f"/submissions/{answer['id']}")

    await consume(env)
    ended = await get_json(own)
    assert (ended["state"], ended["verdict"], ended["slug"]) == ("PUBLISHED", "notes", "ask-server")
    assert [step["to"] for step in ended["history"]] == WHOLE_WAY
    assert await steps(env, answer["id"]) == WHOLE_WAY

    visitor = Visitor()
    page = await visitor.open("/skills/ask-server")
    archive = await get_bytes(zip_address(page))
    assert archive == await get_bytes(zip_address(page))
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        content = {name: opened.read(name).decode() for name in opened.namelist()}
    assert content == {"SKILL.md": FILES["skills/ask-server/SKILL.md"], "scripts/ask.py": SCRIPT}


async def test_a_published_skill_is_found_and_listed_in_the_same_moment(env: WorkerEnv, repository: Path) -> None:
    await submit_by_api(repoUrl=address_of(repository))
    assert (await get_json("/api/v1/skills"))["items"] == []
    await consume(env)
    listed = await get_json("/api/v1/skills")
    assert {item["slug"] for item in listed["items"]} == {"ask-server", "hello-skill"}
    assert listed["nextCursor"] is None
    hits = await get_json("/api/v1/search?q=whoever")
    assert [hit["slug"] for hit in hits["results"]] == ["hello-skill"]
    visitor = Visitor()
    await visitor.open("/skills?q=server")
    assert "ask-server" in visitor.words()
    assert "hello-skill" not in visitor.words()


async def test_submitting_the_same_content_again_changes_nothing(env: WorkerEnv, repository: Path) -> None:
    first, answer = await submit_by_api(repoUrl=address_of(repository), skillName="hello-skill")
    pending, same = await submit_by_api(repoUrl=f"{address_of(repository)}/", skillName="hello-skill")
    assert (first, pending) == (202, 200)
    assert same["duplicate"]
    assert same["submissionId"] == answer["id"]
    await consume(env)
    again, published = await submit_by_api(repoUrl=address_of(repository), skillName="hello-skill")
    assert again == 200
    assert published["alreadyVerified"]
    assert published["id"] == answer["id"]
    assert (await stored(env)).submissions == [("skills/hello-skill", "PUBLISHED")]
    assert (await stored(env)).messages == 0


async def test_new_content_becomes_a_new_version_of_the_same_skill(env: WorkerEnv, repository: Path) -> None:
    await submit_by_api(repoUrl=address_of(repository), skillName="hello-skill")
    await consume(env)
    commit(repository, {**FILES, "skills/hello-skill/SKILL.md": skill_md("hello-skill", "Says good evening.")})
    status, answer = await submit_by_api(repoUrl=address_of(repository), skillName="hello-skill")
    assert status == 202
    await consume(env)
    assert (await get_json(f"/api/v1/submissions/{answer['id']}"))["version"] == "0.0.2"
    assert [item["slug"] for item in (await get_json("/api/v1/skills"))["items"]] == ["hello-skill"]
    visitor = Visitor()
    await visitor.open("/skills/hello-skill")
    assert "Says good evening." in visitor.words()


async def test_what_is_published_is_the_commit_that_was_submitted(env: WorkerEnv, repository: Path) -> None:
    _, answer = await submit_by_api(repoUrl=address_of(repository), skillName="hello-skill")
    commit(repository, {**FILES, "skills/hello-skill/SKILL.md": skill_md("hello-skill", "Came too late.")})
    await consume(env)
    ended = await get_json(f"/api/v1/submissions/{answer['id']}")
    assert (ended["state"], ended["commitSha"]) == ("PUBLISHED", answer["commitSha"])
    visitor = Visitor()
    await visitor.open("/skills/hello-skill")
    assert "Says hello to whoever asks." in visitor.words()


async def test_a_held_skill_says_why_and_is_not_shown(env: WorkerEnv, tmp_path: Path) -> None:
    demo = await build_demo_repository(tmp_path / "demo.git")
    status, answer = await submit_by_api(repoUrl=demo.url, skillName="key-backup")
    assert status == 202
    await consume(env)
    ended = await get_json(f"/api/v1/submissions/{answer['id']}")
    assert ended["state"] == "ON_HOLD"
    assert ended["slug"] is None
    assert any("scripts/backup.py" in reason for reason in ended["decision"]["reasons"])
    visitor = Visitor()
    await visitor.open(f"/submissions/{answer['id']}")
    assert "Held for review" in visitor.words()
    assert "scripts/backup.py" in visitor.words()
    await visitor.open("/skills/key-backup")
    assert visitor.status == 404


def test_the_commands_do_what_the_pages_do(
    env: WorkerEnv, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("submit", address_of(repository), "--json")
    skills = json.loads(capsys.readouterr().out)["skills"]
    assert {skill["outcome"] for skill in skills} == {"created"}
    call_command("consume", "--drain")
    assert "consumer ended: 2 done" in capsys.readouterr().out
    for skill in skills:
        page = Client().get(f"/submissions/{skill['submission']['id']}")
        assert "Published" in page.content.decode()
