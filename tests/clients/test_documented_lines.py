"""Every line of docs/clients.md, run as it stands there with the address of a server in the place of REGISTRY."""

from __future__ import annotations

import re
from pathlib import Path

from asgiref.sync import async_to_sync

from marketplace.models import SkillEntry
from submissions.models import SubmissionEntry
from tests.clients.conftest import APM, CLAUDE, CODEX, ROOT, ClientMachine, LiveServer
from tests.clients.test_transfers import logged_in
from tests.clients.test_uploads import write_skill
from tests.docs.examples import blocks
from tests.marketplace.factories import publish_example
from tests.submissions.front_door import drain
from tests.submissions.uploads.uploading import token_for
from vskill.environments import WorkerEnv


def test_every_line_does_what_the_page_says(
    env: WorkerEnv, server: LiveServer, machine: ClientMachine, tmp_path: Path
) -> None:
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
    # Whoever receives a skill is somebody else, elsewhere.
    receiver = logged_in(env, server, tmp_path / "grace", "newco")
    for line in run:
        by = receiver if line.startswith("npx clawhub transfer accept") else machine
        by.shell(re.sub("REGISTRY|HOST|TOKEN", lambda one: words[one[0]], line))
        async_to_sync(drain)(env)

    inside = "plugins/pdf-tools/skills/pdf-tools/SKILL.md"
    assert "Second." in (machine.work / "pdf-tools" / inside).read_text()
    assert "First." in (machine.work / "one-version" / inside).read_text()
    assert "Second." in (machine.work / ".claude/skills/pdf-tools/SKILL.md").read_text()
    assert SubmissionEntry.objects.get().skill_name == "csv-tools"
    assert SkillEntry.objects.get(slug="csv-tools").publisher_handle == "newco"
