"""Microsoft's apm, unmodified, against a running server."""

from __future__ import annotations

import asyncio
import shutil

import pytest

from marketplace.catalog import quarantine_version, yank_version
from marketplace.install_lines.commands import commands
from tests.clients.conftest import APM, ClientMachine, LiveServer
from tests.clients.test_git import token_to_read
from tests.marketplace.factories import publish_example
from tests.submissions.source.connect_proxy import ConnectProxy, over_https
from tests.submissions.source.https_host import CERTIFICATE
from vskill.accounts.audiences import MEMBERS
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.skipif(not APM.exists(), reason=f"not installed: {APM} (make apm)")

MANIFEST = """\
name: my-project
version: 1.0.0
registries:
  ours:
    url: {url}/api/apm
  default: ours
dependencies:
  apm:
    - acme/pdf-tools#^1.0.0
"""


def test_it_installs_locks_and_installs_the_same_bytes_again(
    env: WorkerEnv, server: LiveServer, machine: ClientMachine
) -> None:
    for number in ("1.0.0", "1.1.0"):
        publish_example(env, name="pdf-tools", declared_version=number, body=f"Version {number}.")
    (machine.work / "apm.yml").write_text(MANIFEST.format(url=server.url))
    (machine.work / ".claude").mkdir()
    machine.shell("apm experimental enable registries")

    assert "acme/pdf-tools" in machine.shell("apm install")

    places = [machine.work / place for place in (".claude/skills", "apm_modules")]
    installed = places[0] / "pdf-tools/SKILL.md"
    first = installed.read_bytes()
    assert b"Version 1.1.0." in first
    assert "resolved_hash: sha256:" in (machine.work / "apm.lock.yaml").read_text()

    publish_example(env, name="pdf-tools", declared_version="1.2.0", body="Version 1.2.0.")
    yank_version(env, "pdf-tools", "1.1.0", actor="test", reason="broken")
    for place in places:
        shutil.rmtree(place)
    machine.shell("apm install --frozen")
    assert installed.read_bytes() == first

    quarantine_version(env, "pdf-tools", "1.1.0", actor="test", reason="steals keys")
    for place in places:
        shutil.rmtree(place)
    machine.shell("apm install --frozen", code=1)
    assert not installed.exists()


def test_the_lines_of_a_private_skill_take_a_token_over_https(
    env: WorkerEnv, server: LiveServer, machine: ClientMachine
) -> None:
    publish_example(env, body="Quiet.", audience=MEMBERS)
    token = token_to_read(env)
    assert "apm" not in commands(server.url, "acme", "hello-skill", "0.0.1", bearing=True)

    async def install() -> None:
        async with over_https(ConnectProxy(int(server.url.rpartition(":")[2]))) as front:
            line = commands(front.url, "acme", "hello-skill", "0.0.1", bearing=True)["apm"].replace("TOKEN", token)
            trusting = f"export REQUESTS_CA_BUNDLE={CERTIFICATE} SSL_CERT_FILE={CERTIFICATE}"
            await asyncio.to_thread(machine.shell, f"set -e; {trusting}; mkdir .claude\n{line}")

    asyncio.run(install())
    assert "Quiet." in (machine.work / ".claude/skills/hello-skill/SKILL.md").read_text()
