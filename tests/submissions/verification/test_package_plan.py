"""Which files a package holds, and what its list of files shows."""

from __future__ import annotations

import pytest

from submissions.source.tree_entries import TreeEntry
from submissions.verification.findings import FindingKind, Severity
from submissions.verification.package_plan import PackagePlan, plan_package
from submissions.verification.structure import PackageLimits

LIMITS = PackageLimits(files=30, total_bytes=1000, code_file_bytes=100)


def entry(path: str, mode: str = "100644", size: int | None = 10) -> TreeEntry:
    return TreeEntry(path, mode, size, f"id of {path}")


def link(path: str) -> TreeEntry:
    return entry(path, "120000")


def plan(*entries: TreeEntry, root: str = "skills/a", links: dict[str, str] | None = None) -> PackagePlan:
    targets = {f"id of {path}": target.encode() for path, target in (links or {}).items()}
    return plan_package(root, entries, targets, LIMITS)


def rules(made: PackagePlan) -> dict[str, Severity]:
    return {finding.rule_id: finding.severity for finding in made.findings}


def test_an_ordinary_package_has_no_findings() -> None:
    names = [
        *("SKILL.md", "scripts/run.py", ".gitignore", "a b.txt", "LICENSE"),
        *("\u4f60\u597d.md", "refs/x (1).md", "a~1", "a.zip"),
    ]
    made = plan(*map(entry, names), entry("run", "100755"))
    assert made.findings == []
    assert sorted(made.files) == sorted([*names, "run"])


@pytest.mark.parametrize(
    ("found", "rule", "severity"),
    [
        (entry("s", "160000", None), "structure.submodule", Severity.MEDIUM),
        (entry("d", "060000"), "structure.file-type", Severity.HIGH),
        (entry(".."), "structure.name", Severity.HIGH),
        (entry("a\u202eb"), "structure.name", Severity.HIGH),
        (entry("con.txt"), "structure.name", Severity.HIGH),
        (link("gone"), "structure.link", Severity.MEDIUM),
        (entry(".DS_Store"), "lint.left-out", Severity.LOW),
        (entry("img/._a.png"), "lint.left-out", Severity.LOW),
        (entry("__MACOSX/a.png"), "lint.left-out", Severity.LOW),
        (entry("skill.md"), "structure.colliding-names", Severity.HIGH),
    ],
)
def test_what_is_left_out_is_named_and_the_rest_is_carried(found: TreeEntry, rule: str, severity: Severity) -> None:
    made = plan(entry("SKILL.md"), found)
    assert rules(made) == {rule: severity}
    assert list(made.files) == ["SKILL.md"]
    assert all(finding.advice and finding.why for finding in made.findings)


@pytest.mark.parametrize(
    ("found", "rule", "severity"),
    [
        (entry("big.py", size=101), "structure.code-size", Severity.HIGH),
        (entry("Makefile", size=101), "structure.code-size", Severity.HIGH),
        (entry("tool", "100755", 101), "structure.code-size", Severity.HIGH),
        (entry("Shot 3.05\u202fAM.png"), "lint.file-name", Severity.LOW),
        (entry("e\u0301.md"), "lint.file-name", Severity.LOW),
        (entry("inner/SKILL.md"), "lint.nested-skill", Severity.LOW),
    ],
)
def test_what_is_carried_with_a_finding(found: TreeEntry, rule: str, severity: Severity) -> None:
    made = plan(entry("SKILL.md"), found)
    assert rules(made) == {rule: severity}
    assert sorted(made.files) == sorted(["SKILL.md", found.path])


def test_a_character_in_a_file_name_is_named_and_spelled_out() -> None:
    [finding] = plan(entry("SKILL.md"), entry("Shot 3.05\u202fAM.png")).findings
    assert "U+202F, narrow no-break space" in finding.title
    assert finding.file == "Shot 3.05\\u{202f}AM.png"


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("AGENTS.md", {"l": "AGENTS.md"}),
        ("./refs/../AGENTS.md", {"l": "AGENTS.md"}),
        ("../a/AGENTS.md", {"l": "AGENTS.md"}),
        ("../../skills/a/AGENTS.md", {"l": "AGENTS.md"}),
        ("second", {"l": "AGENTS.md"}),
        ("refs", {"l/x.md": "refs/x.md", "l/y/z.md": "refs/y/z.md"}),
        ("through/x.md", {"l": "refs/x.md"}),
    ],
)
def test_a_link_inside_the_skill_is_replaced_by_what_it_leads_to(target: str, expected: dict[str, str]) -> None:
    entries = [entry(one) for one in ("SKILL.md", "AGENTS.md", "refs/x.md", "refs/y/z.md")]
    links = {"l": target, "second": "AGENTS.md", "through": "refs"}
    made = plan(*entries, *map(link, links), links=links)
    replaced = {path: one.path for path, one in made.files.items() if path == "l" or path.startswith("l/")}
    assert replaced == expected
    assert rules(made) == {"structure.link": Severity.LOW}


@pytest.mark.parametrize(
    ("target", "severity"),
    [
        ("/etc/passwd", Severity.HIGH),
        ("../../../etc/passwd", Severity.HIGH),
        ("../../../../../../etc/passwd", Severity.HIGH),
        ("../b/AGENTS.md", Severity.HIGH),
        ("..", Severity.HIGH),
        ("absent", Severity.MEDIUM),
        ("l", Severity.MEDIUM),
        ("loop", Severity.MEDIUM),
        (".", Severity.MEDIUM),
        ("s", Severity.MEDIUM),
        ("", Severity.MEDIUM),
        ("a\0b", Severity.MEDIUM),
        ("x/../" * 500 + "AGENTS.md", Severity.MEDIUM),
    ],
)
def test_any_other_link_is_left_out_and_one_out_of_the_skill_holds_it(target: str, severity: Severity) -> None:
    entries = [entry("SKILL.md"), entry("AGENTS.md")]
    made = plan(*entries, link("l"), links={"l": target, "loop": "l"})
    assert rules(made) == {"structure.link": severity}
    assert sorted(made.files) == ["AGENTS.md", "SKILL.md"]


def test_a_link_to_the_folder_around_it_is_left_out() -> None:
    made = plan(entry("SKILL.md"), entry("refs/x.md"), link("refs/l"), links={"refs/l": "../refs"})
    assert sorted(made.files) == ["SKILL.md", "refs/x.md"]


def test_a_link_to_an_enormous_folder_of_links_is_bounded() -> None:
    links = {f"l{n}": "refs" for n in range(20)}
    files = [entry(f"refs/{n}", size=1) for n in range(9)]
    made = plan(entry("SKILL.md"), *files, *map(link, links), links=links)
    assert "format.too-many-files" in rules(made)


def test_another_spelling_is_offered_as_skill_md() -> None:
    made = plan(entry("skill.md"), entry("refs/skill.md"))
    assert {path: one.path for path, one in made.files.items()} == {
        "SKILL.md": "skill.md",
        "refs/skill.md": "refs/skill.md",
    }


def test_limits_are_inclusive() -> None:
    assert rules(plan(entry("a.py", size=100), entry("b.csv", size=900))) == {}
    assert rules(plan(*(entry(f"f{n}") for n in range(30)))) == {}
    assert list(rules(plan(*(entry(f"f{n}") for n in range(31))))) == ["format.too-many-files"]
    assert list(rules(plan(entry("data.csv", size=1001)))) == ["format.too-large"]


def test_a_size_that_is_not_known_yet_is_no_problem() -> None:
    assert rules(plan(entry("SKILL.md", size=None), entry("a.py", size=None))) == {}


def test_the_largest_file_is_named() -> None:
    findings = plan(entry("a", size=400), entry("b", size=601)).findings
    assert [(finding.file, finding.kind) for finding in findings] == [("b", FindingKind.FORMAT)]


def test_a_thousand_links_are_not_named_one_by_one() -> None:
    made = plan_package("", [link(f"l{n}") for n in range(1000)], {}, PackageLimits(files=2000))
    assert 10 < len(made.findings) < 30
