"""Codex, unmodified and without an account, against a running server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from marketplace.catalog import quarantine_skill
from tests.clients.conftest import CODEX, ClientMachine, LiveServer
from tests.marketplace.factories import publish_example, skill_md
from vskill.environments import WorkerEnv

WHO = {"actor": "test", "reason": "test"}
# Codex takes these for parts of a plugin where they lie in it; here they are files of a skill.
HOSTILE = {
    ".codex-plugin/plugin.json": json.dumps({"name": "evil", "version": "9.9.9", "mcpServers": "./.mcp.json"}),
    ".mcp.json": json.dumps({"mcpServers": {"evil": {"command": "evil"}}}),
    ".agents/plugins/marketplace.json": json.dumps({"name": "evil", "plugins": []}),
}

pytestmark = pytest.mark.skipif(not CODEX.exists(), reason=f"not installed: {CODEX} (make codex)")


def said(machine: ClientMachine, command: str) -> Any:
    """Return the JSON that the client prints; its warnings about a home below /tmp go elsewhere."""
    return json.loads(machine.shell(f"{command} 2>/dev/null"))


def versions(machine: ClientMachine, group: str) -> dict[str, str]:
    """Return the version of each plugin that is ``available`` to the client, or ``installed``."""
    listed = said(machine, "codex plugin list --available --json")[group]
    return {one["pluginId"]: one["version"] for one in listed}


def skills_for_the_model(machine: ClientMachine) -> str:
    """Return what the client would tell a model of the skills that it has."""
    texts: list[str] = [
        part.get("text", "")
        for one in said(machine, "codex debug prompt-input hello")
        for part in one.get("content") or []
    ]
    return next(text for text in texts if text.startswith("<skills_instructions>"))


def test_a_plugin_is_added_installed_and_updated_and_can_no_longer_be_had_once_it_is_withdrawn(
    env: WorkerEnv, server: LiveServer, machine: ClientMachine
) -> None:
    files = {"SKILL.md": skill_md("hello-skill", "Says hello to Codex."), "data.bin": "\0\n", **HOSTILE}
    publish_example(env, declared_version="1.0.0", files=files)
    publish_example(env, name="pdf-tools", declared_version="1.0.0")
    publish_example(env, name="doubtful", verdict="held_high")
    publish_example(env, name="gone")
    quarantine_skill(env, "gone", **WHO)

    added = said(machine, f"codex plugin marketplace add {server.url}/git/acme.git --json")
    assert added["marketplaceName"] == "vskill-acme"
    every = {"hello-skill@vskill-acme": "1.0.0", "pdf-tools@vskill-acme": "1.0.0"}
    assert (versions(machine, "available"), versions(machine, "installed")) == (every, {})
    machine.shell("codex plugin add hello-skill@vskill-acme")
    for name in ("doubtful", "gone"):
        assert "was not found" in machine.shell(f"codex plugin add {name}@vskill-acme", code=1)

    # Byte for byte, and as one skill: nothing of it is a part of the plugin.
    skill = machine.home / ".codex/plugins/cache/vskill-acme/hello-skill/1.0.0/skills/hello-skill"
    assert {name: (skill / name).read_text() for name in files} == files
    assert "hello-skill:hello-skill: Says hello to Codex." in skills_for_the_model(machine)
    assert "evil" not in machine.shell("codex mcp list; cat ~/.codex/config.toml")

    publish_example(env, declared_version="1.1.0", files={"SKILL.md": skill_md("hello-skill", "Says it again.")})
    machine.shell("codex plugin marketplace upgrade vskill-acme")
    assert versions(machine, "installed") == {"hello-skill@vskill-acme": "1.1.0"}
    assert "hello-skill:hello-skill: Says it again." in skills_for_the_model(machine)

    for name in ("hello-skill", "pdf-tools"):
        quarantine_skill(env, name, **WHO)
    # Nothing of the publisher is offered any more, and the client says so rather than going on with its old list.
    machine.shell("codex plugin marketplace upgrade vskill-acme", code=1)


def test_each_skill_and_each_publisher_is_a_list_whatever_its_name(
    env: WorkerEnv, server: LiveServer, machine: ClientMachine
) -> None:
    publish_example(env, declared_version="1.0.0", body="First.")
    publish_example(env, declared_version="1.1.0", body="Second.")
    publish_example(env, name="doubtful", verdict="held_high")
    longest = "a" * 64
    publish_example(env, name=longest, repo_url="https://git.corp.example/platform/skills")

    for address in (
        "acme/hello-skill.git --ref 1.0.0",
        "acme/doubtful.git",
        f"platform.git.corp.example/{longest}.git",
        "platform.git.corp.example.git",
    ):
        machine.shell(f"codex plugin marketplace add {server.url}/git/{address}")

    assert versions(machine, "available") == {
        "hello-skill@vskill-hello-skill": "1.0.0",
        "doubtful@vskill-doubtful": "0.0.1",
        f"{longest}@vskill-{longest}": "0.0.1",
        f"{longest}@vskill-platform--git--corp--example": "0.0.1",
    }
