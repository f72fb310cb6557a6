"""Every line of docs/clients.md, run as it stands there with the address of a server in the place of REGISTRY."""

from __future__ import annotations

import re

from tests.clients.conftest import CLAUDE, ROOT, ClientMachine, LiveServer
from tests.docs.examples import blocks
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv


def test_every_line_does_what_the_page_says(env: WorkerEnv, server: LiveServer, machine: ClientMachine) -> None:
    publish_example(env, name="pdf-tools", declared_version="1.2.0", body="First.")
    publish_example(env, name="pdf-tools", declared_version="1.3.0", body="Second.")
    page = ROOT / "docs" / "clients.md"
    lines = [line.strip() for block in blocks(page) if not block.language for line in block.lines()]
    host = re.sub(r"\W", "-", server.url.removeprefix("http://"))
    run = [line for line in lines if CLAUDE.exists() or not line.startswith("claude ")]
    assert len([machine.shell(line.replace("REGISTRY", server.url).replace("HOST", host)) for line in run]) > 2

    inside = "plugins/pdf-tools/skills/pdf-tools/SKILL.md"
    assert "Second." in (machine.work / "pdf-tools" / inside).read_text()
    assert "First." in (machine.work / "one-version" / inside).read_text()
    assert "Second." in (machine.work / ".claude/skills/pdf-tools/SKILL.md").read_text()
