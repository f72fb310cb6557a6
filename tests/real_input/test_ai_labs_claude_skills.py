"""Twenty-seven skills by somebody else, from the npm package ai-labs-claude-skills 2.0.1, through real processes.

The verdicts below were read against the files by a person. A new engine or rule may change them: then read again.
What came out is written to build/real-input.md.
"""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest

from marketplace.pages.wording import capability_words
from marketplace.skills.capability_names import asked_names
from submissions.states import FINAL_STATES
from tests.end_to_end.journey import WHOLE_WAY, zip_address
from tests.end_to_end.processes import ROOT, Instance, free_port, instance
from tests.end_to_end.web import answer, body, raw_answer, until_healthy
from tests.git_factory import make_repository

PACKAGE: Final = ROOT / "tests" / "clients" / "node_modules" / "ai-labs-claude-skills"
SKILLS: Final = PACKAGE / "dist" / "skills"
REPORT: Final = ROOT / "build" / "real-input.md"

READS, WRITES, SHELL = "filesystem_read", "filesystem_write", "shell_execution"
NETWORK, SENDS = "network", "sends_files"
# What each one can do, as its files show; nothing in any of them has to be held.
CAPABILITIES: Final[dict[str, set[str]]] = {
    "brand-analyzer": set(),
    "business-analytics-reporter": {WRITES},
    "business-document-generator": {READS, WRITES},
    "cicd-pipeline-generator": {NETWORK},
    "codebase-documenter": {NETWORK, SENDS},
    "csv-data-visualizer": {READS, WRITES},
    "data-analyst": {READS, WRITES},
    "docker-containerization": {SHELL},
    "document-skills/docx": {READS, WRITES, SHELL},
    "document-skills/pdf": {READS, WRITES},
    "document-skills/pptx": {READS, WRITES, SHELL},
    "document-skills/xlsx": {READS, WRITES, SHELL},
    "finance-manager": {READS, WRITES},
    "frontend-enhancer": set(),
    "nutritional-specialist": {READS, WRITES},
    "personal-assistant": {READS, WRITES},
    "pitch-deck": {READS},
    "research-paper-writer": set(),
    "resume-manager": {READS, WRITES},
    "script-writer": {READS, WRITES},
    "seo-optimizer": {READS, WRITES},
    "social-media-generator": set(),
    "startup-validator": {READS, WRITES},
    "storyboard-manager": {READS},
    "tech-debt-analyzer": {READS},
    "test-specialist": {READS, NETWORK},
    "travel-planner": {READS, WRITES},
}
# Documents that no engine reads, which cannot run, and examples of an interface that send what a user would send.
NOTES: Final[dict[str, set[str]]] = {
    "business-document-generator": {
        f"File not read (assets/templates/{name} Template.pdf)."
        for name in ("Annual Budget Plan", "Comprehensive Business Plan", "Professional Proposal")
    },
    "codebase-documenter": {
        f"Sends files to a place that the description does not name (assets/templates/API.template.md:{line})."
        for line in (41, 276)
    },
    "research-paper-writer": {
        f"File not read (assets/{name}.pdf)." for name in ("full_paper_template", "interim-layout")
    },
}

pytestmark = [
    pytest.mark.database,
    pytest.mark.realinput,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not SKILLS.is_dir(), reason=f"not installed: {PACKAGE.relative_to(ROOT)} (make clients)"),
]


@dataclass(frozen=True)
class Ended:
    """One skill after the whole way: its files as they were submitted, and what the API and its page say."""

    path: str
    files: dict[str, bytes]
    told: dict[str, Any]

    @property
    def slug(self) -> str:
        """Return the slug under which it was published."""
        return str(self.told["slug"])

    @property
    def said(self) -> list[str]:
        """Return every reason that is given, the decision's own first."""
        decision = self.told["decision"] or {"summary": "", "reasons": []}
        return [text for text in (*decision["reasons"], decision["summary"], self.told["reason"]) if text]


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """Run web server, consumer and scheduler, with the skills submitted over HTTP and all of them at an end."""
    folder = tmp_path_factory.mktemp("real-input") / "data"
    with instance(folder, HOST="127.0.0.1", PORT=str(free_port()), DEMO="0") as made:
        repository = make_repository(folder / "skills.git", {f"skills/{p}": c for p, c in files_of(SKILLS).items()})
        with made.started("up") as up:
            until_healthy(made, up)
            status, content = raw_answer(made, "/api/v1/submissions", {"repoUrl": repository.as_uri()})
            assert status == 202, content
            assert {one["outcome"] for one in json.loads(content)["submissions"]} == {"created"}
            up.until(lambda: all(state in FINAL_STATES for state in made.states().values()))
            yield made


@pytest.fixture(scope="module")
def ended(installation: Instance) -> dict[str, Ended]:
    """Return every skill by its path in the package, and write the report of them."""
    rows = installation.rows("SELECT key FROM submissions_submissionentry")
    skills: dict[str, Ended] = {}
    for (key,) in rows:
        told = body(installation, f"/api/v1/submissions/{key.removeprefix('sub:')}")
        path = told["skillPath"].removeprefix("skills/")
        skills[path] = Ended(path, files_of(SKILLS / path), told)
    write_report(skills)
    return skills


def write_report(skills: dict[str, Ended]) -> None:
    lines = [
        f"# ai-labs-claude-skills 2.0.1: {len(skills)} skills",
        "",
        "| skill | files | state | verdict | reasons |",
        "|---|---|---|---|---|",
    ]
    for path, skill in sorted(skills.items()):
        reasons = " ".join(skill.said).replace("|", "\\|")
        told = skill.told
        lines.append(f"| {path} | {len(skill.files)} | {told['state']} | {told['verdict']} | {reasons} |")
    REPORT.parent.mkdir(exist_ok=True)
    # Two runs of the tests may write it at once.
    draft = REPORT.with_suffix(f".{os.getpid()}")
    draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
    draft.replace(REPORT)


def test_the_package_has_the_skills_that_were_read_by_a_person() -> None:
    version = json.loads((PACKAGE / "package.json").read_text(encoding="utf-8"))["version"]
    found = {path.parent.relative_to(SKILLS).as_posix() for path in SKILLS.rglob("SKILL.md")}
    assert (version, len(found), found) == ("2.0.1", 27, set(CAPABILITIES))


def test_every_skill_ends_with_a_reason(ended: dict[str, Ended]) -> None:
    assert set(ended) == set(CAPABILITIES)
    assert {skill.told["state"] for skill in ended.values()} == {"PUBLISHED"}
    assert all(skill.said for skill in ended.values())
    for skill in ended.values():
        assert [step["to"] for step in skill.told["history"]] == WHOLE_WAY


@pytest.mark.parametrize("path", CAPABILITIES)
def test_the_verdict_is_the_one_that_its_files_give(installation: Instance, ended: dict[str, Ended], path: str) -> None:
    told = ended[path].told
    expected = set(NOTES.get(path, set()))
    if expected or CAPABILITIES[path]:
        deeds = [one["name"] for one in body(installation, f"/api/v1/skills/{ended[path].slug}")["contract"]["does"]]
        asked = asked_names((*deeds, *CAPABILITIES[path]), None)
        expected |= {f"Asks for: {capability_words(name).label}." for name in asked}
    assert told["verdict"] == ("notes" if expected else "clear")
    assert set(told["decision"]["reasons"]) == expected


@pytest.mark.parametrize("path", CAPABILITIES)
def test_its_page_search_and_archive_work(installation: Instance, ended: dict[str, Ended], path: str) -> None:
    skill = ended[path]
    status, page = answer(installation, f"/skills/{skill.slug}")
    assert status == 200
    assert skill.told["skillName"] in page
    title = re.findall(rb"(?m)^# (.+)$", skill.files["SKILL.md"])[0].decode()
    hits = body(installation, f"/api/v1/search?q={quote(skill.told['skillName'])}")["results"]
    assert skill.slug in [hit["slug"] for hit in hits]
    listed, found = answer(installation, f"/skills?q={quote(skill.told['skillName'])}")
    assert (listed, f"/skills/{skill.slug}" in found) == (200, True)
    assert f">{title}" in page.replace("&amp;", "&")

    status, archive = raw_answer(installation, zip_address(page))
    assert status == 200
    assert raw_answer(installation, zip_address(page))[1] == archive
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        assert {name: opened.read(name) for name in opened.namelist()} == skill.files


def test_all_of_them_are_listed(installation: Instance, ended: dict[str, Ended]) -> None:
    slugs: list[str] = []
    cursor = ""
    while True:
        page = body(installation, f"/api/v1/skills?limit=10{f'&cursor={quote(cursor)}' if cursor else ''}")
        slugs += [item["slug"] for item in page["items"]]
        cursor = page["nextCursor"]
        if not cursor:
            break
    assert sorted(slugs) == sorted(skill.slug for skill in ended.values())
