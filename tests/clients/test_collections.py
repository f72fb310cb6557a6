"""The lines with which a collection is installed, as its page and the API give them, run by the real clients."""

from __future__ import annotations

import json
import urllib.request

import pytest

from marketplace.catalog import quarantine_skill, yank_version
from marketplace.skill_sets.editing import Choice, Told, create_collection
from tests.clients.conftest import APM, CLAUDE, CODEX, ClientMachine, LiveServer
from tests.marketplace.factories import publish_example
from tests.page_text import without_inline_tags
from vskill.environments import WorkerEnv

WHO = {"actor": "test", "reason": "test"}


@pytest.fixture
def lines(env: WorkerEnv, server: LiveServer) -> dict[str, str]:
    """Return the lines for a set of four, of which one is pinned, one is withdrawn and one has findings."""
    for name in ("hello-skill", "pdf-tools", "gone"):
        publish_example(env, name=name, declared_version="1.0.0", body="First.")
    publish_example(env, name="pdf-tools", declared_version="2.0.0", body="Second.")
    publish_example(env, name="doubtful", verdict="held_high")
    publish_example(env, name="not-in-it")
    chosen = (Choice("pdf-tools", "1.0.0"), Choice("gone"), Choice("hello-skill"), Choice("doubtful"))
    create_collection(env, "our-team", Told("Our team's set", "For all of us.", chosen), **WHO)
    publish_example(env, name="hello-skill", declared_version="1.1.0", body="Second.")
    quarantine_skill(env, "gone", **WHO)
    with urllib.request.urlopen(f"{server.url}/api/v1/collections/our-team") as answer:  # noqa: S310 - on loopback
        given = {one["client"]: one["command"] for one in json.load(answer)["install"]}
    with urllib.request.urlopen(f"{server.url}/collections/our-team") as answer:  # noqa: S310 - on loopback
        page = without_inline_tags(answer.read().decode())
    assert all(command in page for command in given.values())
    return given


def test_skills_installs_the_set_by_its_address(
    env: WorkerEnv, server: LiveServer, lines: dict[str, str], machine: ClientMachine
) -> None:
    # Without a terminal the client cannot ask where to install, so that is answered here.
    machine.shell(f"{lines['skills']} -a claude-code -y --copy")
    installed = machine.work / ".claude/skills"
    assert sorted(one.name for one in installed.iterdir()) == ["hello-skill", "pdf-tools"]
    assert "First." in (installed / "pdf-tools/SKILL.md").read_text()
    assert "Second." in (installed / "hello-skill/SKILL.md").read_text()

    # It goes on following the set: what is pinned stays, the other follows.
    publish_example(env, name="hello-skill", declared_version="1.2.0", body="Third.")
    machine.shell("npx skills update -p -y")
    assert "First." in (installed / "pdf-tools/SKILL.md").read_text()
    assert "Third." in (installed / "hello-skill/SKILL.md").read_text()

    yank_version(env, "pdf-tools", "1.0.0", **WHO)
    quarantine_skill(env, "hello-skill", **WHO)
    machine.shell(f"npx skills add {server.url}/collections/our-team --skill '*' -a claude-code -y", code=1)


def test_clawhub_installs_the_set_skill_by_skill(env: WorkerEnv, lines: dict[str, str], machine: ClientMachine) -> None:
    machine.shell(lines["clawhub"], without=("CLAWHUB_REGISTRY", "CLAWHUB_SITE"))
    installed = machine.work / "skills"
    assert sorted(one.name for one in installed.iterdir()) == ["hello-skill", "pdf-tools"]
    assert "First." in (installed / "pdf-tools/SKILL.md").read_text()

    publish_example(env, name="hello-skill", declared_version="1.2.0", body="Third.")
    machine.shell("npx clawhub update --all")
    assert "First." in (installed / "pdf-tools/SKILL.md").read_text()
    assert "Third." in (installed / "hello-skill/SKILL.md").read_text()


def test_curl_fetches_the_archives_of_the_set_and_checks_them(lines: dict[str, str], machine: ClientMachine) -> None:
    assert machine.shell(lines["curl"]).splitlines() == ["pdf-tools.zip: OK", "hello-skill.zip: OK"]


def test_git_clones_the_set_as_one_repository(lines: dict[str, str], machine: ClientMachine) -> None:
    machine.shell(lines["git"])
    plugins = machine.work / "our-team/plugins"
    assert sorted(one.name for one in plugins.iterdir()) == ["hello-skill", "pdf-tools"]
    assert "First." in (plugins / "pdf-tools/skills/pdf-tools/SKILL.md").read_text()


@pytest.mark.skipif(not CLAUDE.exists(), reason=f"not installed: {CLAUDE} (make claude-code)")
def test_claude_code_installs_the_set_plugin_by_plugin(lines: dict[str, str], machine: ClientMachine) -> None:
    machine.shell(f"set -e\n{lines['claude']}")
    cache = machine.home / ".claude/plugins/cache"
    assert {one.parent.name: "First." in one.read_text() for one in cache.rglob("SKILL.md")} == {
        "pdf-tools": True,
        "hello-skill": False,
    }


@pytest.mark.skipif(not CODEX.exists(), reason=f"not installed: {CODEX} (make codex)")
def test_codex_installs_the_set_from_its_repository(lines: dict[str, str], machine: ClientMachine) -> None:
    machine.shell(f"set -e\n{lines['codex']}")
    listed = json.loads(machine.shell("codex plugin list --available --json 2>/dev/null"))["installed"]
    assert {one["pluginId"]: one["version"] for one in listed} == {
        "pdf-tools@vskill-our-team": "1.0.0",
        "hello-skill@vskill-our-team": "1.1.0",
    }


@pytest.mark.skipif(not APM.exists(), reason=f"not installed: {APM} (make apm)")
def test_apm_installs_the_set_and_follows_what_it_does_not_pin(
    env: WorkerEnv, lines: dict[str, str], machine: ClientMachine
) -> None:
    # It installs for the agents whose folders a project has.
    machine.shell(f"set -e; mkdir .claude\n{lines['apm']}")
    publish_example(env, name="hello-skill", declared_version="1.2.0", body="Third.")
    machine.shell("apm update --yes")
    installed = machine.work / ".claude/skills"
    assert {one.name: (one / "SKILL.md").read_text().split()[-1] for one in installed.iterdir()} == {
        "pdf-tools": "First.",
        "hello-skill": "Third.",
    }
