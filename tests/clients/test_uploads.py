"""The clawhub client, unmodified, that uploads to a running server."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model

from marketplace.models import SkillVersion
from submissions.models import StagedFile
from tests.clients.conftest import CLIENT_SECONDS, OLDER_CLAWHUB, ClientMachine
from tests.git_factory import skill_md
from tests.submissions.front_door import EVIL, drain
from tests.submissions.uploads.uploading import token_for
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import make_token
from vskill.environments import WorkerEnv


def write_skill(folder: Path, more: str = "") -> None:
    (folder / "scripts").mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(skill_md(folder.name, f"Does what {folder.name} says.") + more)
    (folder / "scripts/run.sh").write_text("echo hello\n")
    (folder / "data.bin").write_bytes(b"\0\xff\r\n")


def printed_json(text: str) -> Any:
    return json.loads(text[text.index("{") :])


def report(machine: ClientMachine, name: str) -> Any:
    """Return what the manifest of a downloaded report says."""
    with zipfile.ZipFile(machine.work / name) as archive:
        return json.loads(archive.read("manifest.json"))


def test_it_publishes_syncs_scans_verifies_and_deletes(env: WorkerEnv, machine: ClientMachine) -> None:
    user = get_user_model()._default_manager.create_user("ada")
    token = make_token(env, user, name="laptop", scopes=[Scope.SUBMIT, Scope.PUBLISH])[1]
    machine.shell(f"npx clawhub login --token {token} --no-input")
    source = machine.work / "source"
    write_skill(source / "pdf-tools")

    said = machine.shell("npx clawhub publish source/pdf-tools --version 1.0.0 --changelog 'Merges too'")
    assert "pending security scans before it becomes public" in said
    async_to_sync(drain)(env)

    machine.shell("npx clawhub install @ada/pdf-tools")
    for name in ("SKILL.md", "scripts/run.sh", "data.bin"):
        installed = machine.work / "skills/@ada/pdf-tools" / name
        assert installed.read_bytes() == (source / "pdf-tools" / name).read_bytes()

    assert "Merges too" in machine.shell("npx clawhub inspect @ada/pdf-tools --versions")
    write_skill(source / "pdf-tools", "More.\n")
    write_skill(source / "csv-tools")
    synced = printed_json(machine.shell("npx clawhub sync --all --json --root source"))
    assert {one["slug"]: one["version"] for one in synced["submitted"]} == {"pdf-tools": "1.0.1", "csv-tools": "1.0.0"}
    async_to_sync(drain)(env)
    again = printed_json(machine.shell("npx clawhub sync --all --json --root source"))
    assert (again["submitted"], len(again["alreadySynced"])) == ([], 2)
    assert "pass" in machine.shell("npx clawhub skill verify @ada/pdf-tools")

    SkillVersion.objects.update(scan_key="older")
    # On a terminal, which is the only place where it says how far it is.
    line = "stty cols 200 rows 40; npx clawhub scan --slug @ada/pdf-tools"
    with machine.started(f"script -qefc '{line}' /dev/null") as program:
        assert program.stdout is not None
        said = ""
        while "position 1; no scans ahead; 0 running" not in said and (more := program.stdout.read(1)):
            said += more
        assert "position 1" in said, said
        async_to_sync(drain)(env)
        said = program.stdout.read()
        assert program.wait(CLIENT_SECONDS) == 0, said
    assert "Status: SUCCEEDED" in said
    assert "Version: 1.0.1" in said
    # The present engines would say the same again, so the scan ends at once, and its report is there.
    machine.shell("npx clawhub scan --slug @ada/pdf-tools --output reports/newest.zip")
    assert report(machine, "reports/newest.zip")["artifact"]["version"] == "1.0.1"
    machine.shell("npx clawhub scan download @ada/pdf-tools --version 1.0.0 --output reports/first.zip")
    assert report(machine, "reports/first.zip")["artifact"]["version"] == "1.0.0"

    assert "OK. Deleted @ada/pdf-tools" in machine.shell("npx clawhub delete @ada/pdf-tools --reason wrong --yes")
    assert "wrong" in machine.shell("npx clawhub install @ada/pdf-tools --force", code=1)
    assert "OK. Undeleted @ada/pdf-tools" in machine.shell("npx clawhub undelete @ada/pdf-tools --yes")
    assert "1.0.1" in machine.shell("npx clawhub update --all")


def test_it_downloads_the_report_of_what_was_held_as_its_uploader_alone(env: WorkerEnv, machine: ClientMachine) -> None:
    machine.shell(f"npx clawhub login --token {token_for(env, 'ada')} --no-input")
    (machine.work / "key-helper").mkdir()
    (machine.work / "key-helper/SKILL.md").write_text(EVIL)
    machine.shell("npx clawhub publish key-helper --version 1.0.0")
    line = "npx clawhub scan download key-helper --version 1.0.0"
    assert "key-helper 1.0.0 is still being checked" in machine.shell(line, code=1)
    async_to_sync(drain)(env)

    assert "Report ZIP:" in machine.shell(line)
    assert report(machine, "clawhub-scan-key-helper-1.0.0.zip")["artifact"]["slug"] == "key-helper"
    machine.shell("npx clawhub scan download @ada/key-helper --version 1.0.0 --output mine.zip")
    with zipfile.ZipFile(machine.work / "mine.zip") as archive:
        assert json.loads(archive.read("clawscan.json"))["verdict"] == "suspicious"

    machine.shell(f"npx clawhub login --token {token_for(env, 'eve')} --no-input")
    assert "Skill not found" in machine.shell(line, code=1)
    assert "no plugins" in machine.shell(f"{line} --kind plugin", code=1)


@pytest.mark.skipif(not OLDER_CLAWHUB.exists(), reason=f"not installed: {OLDER_CLAWHUB} (make clients)")
def test_an_older_one_uploads_in_one_request_and_installs_what_it_sent(env: WorkerEnv, machine: ClientMachine) -> None:
    machine.shell(f"older-clawhub login --token {token_for(env, 'ada')} --no-input")
    source = machine.work / "source/pdf-tools"
    write_skill(source)
    machine.shell("older-clawhub publish source/pdf-tools --version 1.0.0 --changelog 'The first one'")
    assert not StagedFile.objects.exists()
    async_to_sync(drain)(env)

    assert "pdf-tools" in machine.shell("older-clawhub search pdf")
    assert "The first one" in machine.shell("older-clawhub inspect pdf-tools --versions")
    machine.shell("older-clawhub install pdf-tools")
    # It sends texts alone.
    for name in ("SKILL.md", "scripts/run.sh"):
        assert (machine.work / "skills/pdf-tools" / name).read_bytes() == (source / name).read_bytes()

    write_skill(source, "More.\n")
    machine.shell("older-clawhub publish source/pdf-tools --version 1.1.0")
    async_to_sync(drain)(env)
    assert "1.1.0" in machine.shell("older-clawhub update --all")
    assert "More." in (machine.work / "skills/pdf-tools/SKILL.md").read_text()
    # The newer client goes on from there.
    assert "up to date" in machine.shell("npx clawhub update --all")
