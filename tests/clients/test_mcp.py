"""Published skills over MCP, read by fastmcp's own client, which compares each file with its digest."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from typing import Any

from marketplace.catalog import quarantine_skill
from tests.clients.conftest import CLIENT_SECONDS, HERE, LiveServer
from tests.marketplace.factories import publish_example, skill_md
from vskill.environments import WorkerEnv

WHO = {"actor": "test", "reason": "steals keys"}


def ask(server: LiveServer, method: str, **params: Any) -> Any:
    """Return the answer to one message."""
    body = json.dumps({"jsonrpc": "2.0", "id": "one", "method": method, "params": params}).encode()
    with urllib.request.urlopen(f"{server.url}/mcp", body) as answer:  # noqa: S310 - on loopback
        said = json.load(answer)
    assert (said["jsonrpc"], said["id"]) == ("2.0", "one")
    return said


def test_every_published_skill_is_read_and_no_other(env: WorkerEnv, server: LiveServer) -> None:
    front = (
        "---\nname: hello-skill\ndescription: Says hello.\nmetadata: {a: [1, 2.5, true]}\nversion: 1.0\n---\nHi.\r\n"
    )
    files: dict[str, str | bytes] = {
        "SKILL.md": front + "Hi.\r\n",
        "scripts/a b ü.sh": "#!/bin/sh\r\n",
        "data.bin": b"\xff\0\x80" * 50_000,
    }
    publish_example(env, files=files)
    # One with another name than its slug.
    publish_example(env, repo_url="https://github.com/mallory/skills", body="Another.")
    dated = "---\nname: dated\ndescription: Has a date.\nmade: 2026-01-01\n---\n"
    bomb = "---\nname: bomb\ndescription: Grows.\na: &a [x, x]\nb: [*a, *a]\n---\n"
    for name, text in (("dated", dated), ("bomb", bomb)):
        publish_example(env, name=name, files={"SKILL.md": text})
    publish_example(env, name="doubtful", verdict="held_high")
    publish_example(env, name="gone")
    quarantine_skill(env, "gone", **WHO)

    done = subprocess.run(
        [sys.executable, str(HERE / "read_skills.py"), f"{server.url}/mcp"],
        capture_output=True,
        text=True,
        timeout=CLIENT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "skill://hello-skill/SKILL.md": {path: len(content) for path, content in _bytes(files).items()},
        "skill://mallory-hello-skill/hello-skill/SKILL.md": {
            "SKILL.md": len(skill_md("hello-skill", "Says hello as hello-skill.", "Another.")),
            "scripts/run.sh": 21,
        },
    }

    got = ask(server, "skills/get", uri="skill://doubtful/SKILL.md")["result"]["skill"]
    assert "vskill/warning" in got["_meta"]
    for uri in ("skill://gone/SKILL.md", "skill://none/SKILL.md", "skill://hello-skill/none", "file:///etc/passwd", 1):
        for method in ("skills/get", "resources/read"):
            said = ask(server, method, uri=uri)
            assert said["error"]["code"] == -32602, (method, uri)
    assert "steals keys" in ask(server, "resources/read", uri="skill://gone/SKILL.md")["error"]["message"]
    assert "another list" in ask(server, "skills/list", cursor="nonsense")["error"]["message"]


def _bytes(files: dict[str, str | bytes]) -> dict[str, bytes]:
    return {path: content.encode() if isinstance(content, str) else content for path, content in files.items()}
