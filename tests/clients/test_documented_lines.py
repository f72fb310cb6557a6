"""Every line of docs/clients.md, run as it stands there with the address of a server in the place of REGISTRY."""

from __future__ import annotations

import re

from submissions.models import SubmissionEntry
from tests.clients.conftest import APM, CLAUDE, CODEX, ROOT, ClientMachine, LiveServer
from tests.clients.test_uploads import write_skill
from tests.docs.examples import blocks
from tests.marketplace.factories import publish_example
from tests.submissions.uploads.uploading import token_for
from vskill.environments import WorkerEnv


def test_every_line_does_what_the_page_says(env: WorkerEnv, server: LiveServer, machine: ClientMachine) -> None:
    publish_example(env, name="pdf-tools", declared_version="1.2.0", body="First.")
    publish_example(env, name="pdf-tools", declared_version="1.3.0", body="Second.")
    page = ROOT / "docs" / "clients.md"
    lines = [line.strip() for block in blocks(page) if not block.language for line in block.lines()]
    host = re.sub(r"\W", "-", server.url.removeprefix("http://"))
    missing = tuple(name for name, path in (("claude ", CLAUDE), ("codex ", CODEX), ("apm ", APM)) if not path.exists())
    run = [line for line in lines if not line.startswith(missing)]
    [manifest] = [block.text for block in blocks(page) if block.language == "yaml"]
    (machine.work / "apm.yml").write_text(manifest.replace("REGISTRY", server.url))
    token = token_for(env)
    write_skill(machine.work / "csv-tools")
    words = {"REGISTRY": server.url, "HOST": host, "TOKEN": token}
    assert len([machine.shell(re.sub("REGISTRY|HOST|TOKEN", lambda one: words[one[0]], line)) for line in run]) > 2

    inside = "plugins/pdf-tools/skills/pdf-tools/SKILL.md"
    assert "Second." in (machine.work / "pdf-tools" / inside).read_text()
    assert "First." in (machine.work / "one-version" / inside).read_text()
    assert "Second." in (machine.work / ".claude/skills/pdf-tools/SKILL.md").read_text()
    assert SubmissionEntry.objects.get().skill_name == "csv-tools"
