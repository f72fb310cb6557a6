"""Microsoft's apm, unmodified, against a running server."""

from __future__ import annotations

import shutil

import pytest

from marketplace.catalog import quarantine_version, yank_version
from tests.clients.conftest import APM, ClientMachine, LiveServer
from tests.marketplace.factories import publish_example
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
