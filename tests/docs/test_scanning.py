"""The workflow of docs/scanning.md does what the page says, as far as a machine without GitHub can run it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from submissions.scanning.documents import as_document
from submissions.scanning.outcomes import EXIT_CODES
from submissions.scanning.scan import scan_skill
from submissions.source.plain_folder import open_folder
from submissions.verification.verdict import Verdict
from tests.docs.examples import section
from tests.end_to_end.processes import ROOT
from tests.git_factory import skill_md
from tests.submissions.commands.test_scan import THIEF

PAGE: Final = "docs/scanning.md"
TITLE: Final = "Scan skills without a server, and measure the engines"


def steps() -> list[dict[str, Any]]:
    [block] = [one for one in section(PAGE, TITLE, "On GitHub") if one.language == "yaml"]
    found: list[dict[str, Any]] = yaml.safe_load(block.text)["jobs"]["scan"]["steps"]
    return found


class Runner:
    """Run steps as GitHub's runner does, in a folder of a test."""

    def __init__(self, folder: Path) -> None:
        """Make a checkout and what the runner offers beside it."""
        self.temp, self.checkout, self.summary = folder / "temp", folder / "checkout", folder / "summary.md"
        self.temp.mkdir()
        self.checkout.mkdir()
        # pip needs the network; what it would install is what runs this test.
        (self.temp / "pip").write_text("#!/bin/sh\nexit 0\n")
        (self.temp / "pip").chmod(0o755)

    def run(self, step: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        """Run one step in a shell with the options that the runner gives it."""
        script = step["run"].replace("ADDRESS", f"file://{ROOT}")
        # As in the page, but for an environment that is there already.
        script = re.sub(r'^python3 -m venv (".*?")$', rf'ln -s "{ROOT / ".venv"}" \1', script, flags=re.MULTILINE)
        script = re.sub(r'"\S+/bin/pip"', '"$RUNNER_TEMP/pip"', script)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.temp),
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_STEP_SUMMARY": str(self.summary),
        }
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]
        return subprocess.run(command, cwd=self.checkout, env=environment, capture_output=True, text=True, check=False)

    def write(self, path: str, content: str) -> None:
        """Write a file of the checkout."""
        (self.checkout / path).parent.mkdir(parents=True, exist_ok=True)
        (self.checkout / path).write_text(content)


@pytest.mark.slow
def test_the_workflow_installs_scans_and_fails_where_the_server_would_not_publish(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists() or not (ROOT / ".venv").exists():
        pytest.skip("not a git checkout with an environment, so it can neither be cloned nor run")
    runner = Runner(tmp_path)
    install, scan = [step for step in steps() if "run" in step]
    done = runner.run(install)
    assert done.returncode == 0, done.stderr
    runner.write("skills/honest/SKILL.md", skill_md("honest"))
    done = runner.run(scan)
    assert done.returncode == 0, done.stderr
    assert "1 skill: 1 clear" in runner.summary.read_text()
    runner.write("skills/thief/SKILL.md", skill_md("thief"))
    runner.write("skills/thief/run.py", THIEF)
    done = runner.run(scan)
    assert done.returncode in (EXIT_CODES[Verdict.HELD], EXIT_CODES[Verdict.HELD_HIGH])
    log = json.loads((runner.temp / "skills.sarif").read_text())
    places = [result["locations"][0]["physicalLocation"]["artifactLocation"] for result in log["runs"][0]["results"]]
    assert {"uri": "skills/thief/run.py"} in places
    # Nothing was written beside the skills, where the next scan would read it.
    assert sorted(path.name for path in runner.checkout.iterdir()) == ["skills"]


def test_the_table_of_exit_codes_is_that_of_the_command() -> None:
    rows = re.findall(r"^\| (\d) \| ([a-z, ]+)", (ROOT / PAGE).read_text(encoding="utf-8"), re.MULTILINE)
    said = {int(code): words for code, words in rows}
    assert {code: words for code, words in said.items() if code not in (1, 2)} == {
        EXIT_CODES[Verdict.CLEAR]: "clear, or notes to read ",
        EXIT_CODES[Verdict.FORMAT]: "format",
        EXIT_CODES[Verdict.INCONCLUSIVE]: "not scanned completely ",
        EXIT_CODES[Verdict.HELD]: "held ",
        EXIT_CODES[Verdict.HELD_HIGH]: "held, strong signs ",
        EXIT_CODES[Verdict.REFUSED]: "refused ",
    }


async def test_the_page_names_every_field_of_the_document(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("no frontmatter")
    document = as_document([await scan_skill(open_folder(tmp_path), "", [])])
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    [skill] = document["skills"]
    for name in [*document, *skill, *skill["findings"][0]]:
        assert re.search(rf"`(?:skills\[\]\.)?{name}(?:\[\])?`|`skills\[\]", text), name
        assert name in text
