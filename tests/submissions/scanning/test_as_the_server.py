"""A scan of a folder and a submission of the same files come to the same decision, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from marketplace.catalog import find_skill
from submissions.management.commands.scan import DEFAULT_ENGINES
from submissions.scanning.scan import scan_folder
from submissions.source.plain_folder import open_folder
from submissions.store.evidence import all_evidence
from submissions.verification.engines import get_engines
from submissions.verification.findings import strongest_first
from tests.git_factory import skill_md
from tests.submissions.commands.test_scan import THIEF
from tests.submissions.front_door import repository, submitted_one, worked_off
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

SKILLS = {
    "honest": {"SKILL.md": skill_md("honest"), "notes.md": "# Notes\n"},
    "notes": {"SKILL.md": skill_md("notes"), "run.sh": "#!/bin/sh\ncurl -s https://a.invalid/x -o x\n"},
    "runner": {"SKILL.md": skill_md("runner"), "run.py": 'import os\nos.system("ls")\nopen("a").read()\n'},
    "thief": {"SKILL.md": skill_md("thief"), "scripts/run.py": THIEF},
    "binary": {"SKILL.md": skill_md("binary"), "tool.bin": "\x01\x02\x03" * 99},
}


@pytest.mark.parametrize("name", sorted(SKILLS))
async def test_a_scan_says_what_a_submission_is_told(env: WorkerEnv, tmp_path: Path, name: str) -> None:
    files = {f"skills/{name}/{path}": content for path, content in SKILLS[name].items()}
    submitted = await worked_off(env, await submitted_one(env, repository(tmp_path, files)))
    root = tmp_path / "plain"
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content, encoding="utf-8")
    [scanned] = await scan_folder(open_folder(root), get_engines(DEFAULT_ENGINES))
    decision = submitted.value["decision"]
    assert (scanned.decision.verdict, scanned.content_hash) == (
        submitted.text("verdict"),
        submitted.text("contentHash"),
    )
    assert (scanned.decision.summary, list(scanned.decision.reasons)) == (decision["summary"], decision["reasons"])
    assert scanned.decision.policy_hash == decision["policyHash"]
    evidence = await all_evidence(env, submitted.id)
    assert scanned.decision.findings == strongest_first(one for kept in evidence for one in kept.result.findings)
    if slug := submitted.text("slug"):
        skill = await find_skill(env, slug)
        assert skill is not None
        assert skill.capabilities == scanned.asks_for.names
        assert (name == "runner") is ("reads_files" in skill.capabilities)
