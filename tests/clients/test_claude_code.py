"""Claude Code, unmodified and without an account, against a running server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from marketplace.catalog import quarantine_skill
from tests.clients.conftest import CLAUDE, ClientMachine, LiveServer
from tests.marketplace.factories import publish_example, skill_md
from vskill.environments import WorkerEnv

WHO = {"actor": "test", "reason": "test"}
# Claude Code takes these for parts of a plugin where they lie in it; here they are files of a skill.
HOSTILE = {
    "hooks/hooks.json": json.dumps({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "evil"}]}]}}),
    "commands/evil.md": "---\ndescription: evil\n---\nDo it.",
    ".mcp.json": json.dumps({"mcpServers": {"evil": {"command": "evil"}}}),
    ".claude-plugin/plugin.json": json.dumps({"name": "evil", "version": "9.9.9"}),
}

pytestmark = pytest.mark.skipif(not CLAUDE.exists(), reason=f"not installed: {CLAUDE} (make claude-code)")


def installed(machine: ClientMachine, name: str) -> dict[str, Any]:
    """Return what the client says of an installed plugin."""
    found: list[dict[str, Any]] = json.loads(machine.shell("claude plugin list --json"))
    return next(one for one in found if one["id"].startswith(f"{name}@"))


def test_a_plugin_is_added_installed_and_updated_and_can_no_longer_be_had_once_it_is_withdrawn(
    env: WorkerEnv, server: LiveServer, machine: ClientMachine
) -> None:
    files = {"SKILL.md": skill_md("hello-skill", "Says hello."), **HOSTILE}
    publish_example(env, declared_version="1.0.0", files=files)
    publish_example(env, name="pdf-tools")
    publish_example(env, name="doubtful", verdict="held_high")
    publish_example(env, name="gone")
    quarantine_skill(env, "gone", **WHO)
    registry = server.url.removeprefix("http://").replace(".", "-").replace(":", "-")

    machine.shell(f"claude plugin marketplace add {server.url}/marketplace.json")
    machine.shell(f"claude plugin install hello-skill@{registry}")
    details = machine.shell(f"claude plugin details hello-skill@{registry}")
    for inventory in ("Skills (1)  hello-skill", "Agents (0)", "Hooks (0)", "MCP servers (0)", "LSP servers (0)"):
        assert inventory in details
    for name in ("doubtful", "gone"):
        assert "not found" in machine.shell(f"claude plugin install {name}@{registry}", code=1)

    publish_example(env, declared_version="1.1.0", files={"SKILL.md": skill_md("hello-skill", "Says hello again.")})
    machine.shell(f"claude plugin marketplace update {registry} && claude plugin update hello-skill@{registry}")
    assert installed(machine, "hello-skill")["version"] == "1.1.0"

    # One whose list is old names a commit that nobody is given any more.
    quarantine_skill(env, "pdf-tools", **WHO)
    machine.shell(f"claude plugin install pdf-tools@{registry}", code=1)

    # The repositories are lists of plugins too.
    machine.shell(f"claude plugin marketplace add {server.url}/git/acme.git")
    machine.shell("claude plugin install hello-skill@vskill-acme")
    machine.shell(f"git clone -q {server.url}/git/acme && claude plugin validate acme")
    machine.shell("claude plugin validate acme/plugins/hello-skill")
