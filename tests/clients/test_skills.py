"""The skills client, unmodified and in two versions, against a running server."""

from __future__ import annotations

from pathlib import Path

import pytest

from marketplace.catalog import quarantine_skill, rename_skill, yank_version
from marketplace.models import SkillEntry
from tests.clients.conftest import NEWER_SKILLS, ClientMachine, LiveServer
from tests.marketplace.factories import publish_example, skill_md
from vskill.environments import WorkerEnv

ANSWERS = "-a claude-code -y --copy"
INSTALLED = ".claude/skills"
NEWER = pytest.mark.skipif(not NEWER_SKILLS.exists(), reason=f"not installed: {NEWER_SKILLS} (make newer-skills)")


@pytest.fixture(params=["1.5", pytest.param("1.7", marks=NEWER)])
def machine(request: pytest.FixtureRequest, server: LiveServer, tmp_path: Path) -> ClientMachine:
    """Return a client's machine with one of the versions of the client."""
    found = ClientMachine(tmp_path / "home", server.url)
    if request.param == "1.7":
        found.use_newer_skills()
    assert found.shell("npx skills --version").strip().startswith(request.param)
    return found


def test_it_finds_and_its_answer_can_be_installed(env: WorkerEnv, server: LiveServer, machine: ClientMachine) -> None:
    publish_example(env, name="pdf-tools", description="Merges documents")

    found = machine.shell("npx skills find merges")
    reference = f"{server.url}/acme@pdf-tools"
    assert reference in found
    machine.shell(f"npx skills add {reference} {ANSWERS}")
    assert (machine.work / INSTALLED / "pdf-tools/scripts/run.sh").read_text() == "#!/bin/sh\necho hello\n"


def test_the_address_of_a_skills_page_can_be_installed(
    env: WorkerEnv, server: LiveServer, machine: ClientMachine
) -> None:
    publish_example(env)
    publish_example(env, name="another")

    machine.shell(f"npx skills add {server.url}/skills/hello-skill {ANSWERS}")

    assert [folder.name for folder in (machine.work / INSTALLED).iterdir()] == ["hello-skill"]
    assert (machine.work / INSTALLED / "hello-skill/SKILL.md").read_text() == skill_md(
        "hello-skill", "Says hello as hello-skill."
    )


def test_a_publishers_address_lists_all_of_its_skills(
    env: WorkerEnv, server: LiveServer, machine: ClientMachine
) -> None:
    publish_example(env)
    publish_example(env, name="another")
    publish_example(env, name="foreign", repo_url="https://github.com/mallory/skills")

    for address in ("publishers/acme", "acme"):
        listed = machine.shell(f"npx skills add {server.url}/{address} --list")
        assert "hello-skill" in listed
        assert "another" in listed
        assert "foreign" not in listed


def test_it_updates_when_the_content_changed_and_only_then(
    env: WorkerEnv, server: LiveServer, machine: ClientMachine
) -> None:
    publish_example(env, body="First.")
    machine.shell(f"npx skills add {server.url}/skills/hello-skill {ANSWERS}")
    assert "Updated" not in machine.shell("npx skills check -p -y")

    publish_example(env, body="Second.")
    machine.shell("npx skills check -p -y")
    assert "Second." in (machine.work / INSTALLED / "hello-skill/SKILL.md").read_text()


def test_a_skill_that_is_withdrawn_cannot_be_installed(
    env: WorkerEnv, server: LiveServer, machine: ClientMachine
) -> None:
    publish_example(env)
    publish_example(env, name="another")
    quarantine_skill(env, "hello-skill", actor="test", reason="steals keys")
    yank_version(env, "another", "0.0.1", actor="test", reason="broken")

    for slug in ("hello-skill", "another"):
        machine.shell(f"npx skills add {server.url}/skills/{slug} {ANSWERS}", code=1)
    assert not (machine.work / INSTALLED).exists()


def test_the_registry_itself_is_not_installed_as_a_whole(
    env: WorkerEnv, server: LiveServer, machine: ClientMachine
) -> None:
    publish_example(env)

    machine.shell(f"npx skills add {server.url} {ANSWERS}", code=1)

    assert not (machine.work / INSTALLED).exists()
    assert SkillEntry.objects.get().downloads == 0


def test_it_adds_a_zip_and_an_owner_uses_follows_a_renamed_skill_and_removes(
    env: WorkerEnv, server: LiveServer, machine: ClientMachine
) -> None:
    publish_example(env, body="First.")
    publish_example(env, name="another")
    installed = machine.work / INSTALLED

    machine.shell(f"npx skills add {server.url}/skills/another/download/latest.zip {ANSWERS}")
    assert [folder.name for folder in installed.iterdir()] == ["another"]
    machine.shell(f"npx skills add {server.url}/acme --skill hello-skill {ANSWERS}")
    assert {folder.name for folder in installed.iterdir()} == {"another", "hello-skill"}
    assert "First." in machine.shell(f"npx skills use {server.url}/skills/hello-skill --skill hello-skill")

    # What was installed by its page goes on being updated by that address, and under its name there.
    machine.shell(f"npx skills remove hello-skill -y && npx skills add {server.url}/skills/hello-skill {ANSWERS}")
    rename_skill(env, "hello-skill", "greeting", actor="test", reason="test")
    publish_example(env, body="Second.")
    machine.shell("npx skills check -p -y")
    assert {folder.name for folder in installed.iterdir()} == {"another", "hello-skill"}
    assert "Second." in (installed / "hello-skill/SKILL.md").read_text()
    machine.shell("npx skills remove hello-skill another -y")
    assert not installed.exists() or list(installed.iterdir()) == []
    # Who begins with the new name gets that.
    machine.shell(f"npx skills add {server.url}/acme@greeting {ANSWERS}")
    assert [folder.name for folder in installed.iterdir()] == ["greeting"]


def test_it_finds_and_adds_by_the_short_handle_of_an_owner_whose_handle_has_dots(
    env: WorkerEnv, server: LiveServer, machine: ClientMachine
) -> None:
    publish_example(env, name="pdf-tools", repo_url="https://git.corp.example/platform/skills")
    publish_example(env, name="pdf-other")
    owner = "platform--git--corp--example"

    assert "valid GitHub owner" in machine.shell("npx skills find pdf --owner platform.git.corp.example")
    printed = machine.shell(f"npx skills find pdf --owner {owner}")
    assert f"{server.url}/{owner}@pdf-tools" in printed
    assert "pdf-other" not in printed
    machine.shell(f"npx skills add {server.url}/{owner}@pdf-tools -a claude-code -y --copy")
    assert (machine.work / ".claude/skills/pdf-tools/SKILL.md").exists()
