"""Reading frontmatter: strictly first, then as Claude Code reads what is no YAML."""

from __future__ import annotations

import pytest

from submissions.verification.findings import Severity
from submissions.verification.frontmatter import SkillDocument, Value, read_skill_md
from submissions.verification.lenient_yaml import quote_values
from submissions.verification.manifest import Manifest, read_manifest
from submissions.verification.skill_text import FrontmatterError


def document(lines: str) -> SkillDocument:
    return read_skill_md(f"---\n{lines}\n---\n".encode(), file="SKILL.md", max_bytes=16 * 1024)


def manifest(lines: str, folder: str = "") -> Manifest:
    read = document(lines)
    return read_manifest(read.fields, folder=folder, file="SKILL.md", untyped=read.untyped)


@pytest.mark.parametrize(
    ("lines", "fields"),
    [
        ("name: a\ndescription: Use: it now", {"name": "a", "description": "Use: it now"}),
        ('name: a\ndescription: Say "x": `y`', {"name": "a", "description": 'Say "x": `y`'}),
        ("name: a\nargument-hint: [date] [reason]", {"name": "a", "argument-hint": "[date] [reason]"}),
        (
            "name: a\ndescription: >\n  Two\n  lines.\nhint: b: c",
            {"name": "a", "description": "Two lines.\n", "hint": "b: c"},
        ),
        ("name: a\nmetadata:\n\tauthor: b", {"name": "a", "metadata": {"author": "b"}}),
        ("hint: b: c\ntags: [x, y]", {"hint": "b: c", "tags": ["x", "y"]}),
        ("hint: b: c\nx: &a", {"hint": "b: c", "x": "&a"}),
        ("hint: b: c\nx: !!python/name:os.system", {"hint": "b: c", "x": "!!python/name:os.system"}),
        ("name: [a", {"name": "[a"}),
        ("hint: b: c\\d", {"hint": "b: c\\d"}),
    ],
)
def test_what_is_no_yaml_is_read_as_claude_code_reads_it(lines: str, fields: dict[str, Value]) -> None:
    read = document(lines)
    assert read.fields == fields
    [note] = read.findings
    assert (note.rule_id, note.severity) == ("lint.lenient-yaml", Severity.LOW)
    assert note.line is not None
    assert note.line > 1
    assert "npx skills" in note.advice


@pytest.mark.parametrize(
    "lines",
    [
        "name: a\nx: &a [b]\ny: *a",
        "name: !!python/name:os.system",
        "name: a\nname: b",
        "name: a\nx: [b,\n  c",
        "name: a\n## Heading\nb",
    ],
)
def test_neither_reading_takes_anything_else(lines: str) -> None:
    with pytest.raises(FrontmatterError):
        document(lines)


def test_valid_yaml_is_never_read_twice() -> None:
    read = document('name: a\ndescription: "Use: it"\nmetadata: {a: [1]}')
    assert read.findings == ()
    assert read.fields["metadata"] == {"a": ["1"]}


def test_a_rewritten_text_is_not_rewritten_again() -> None:
    once = quote_values("a: b: c\n\td: `e`\nf: >-\n  g")
    assert quote_values(once) == once


@pytest.mark.parametrize(
    ("value", "untyped"),
    [
        *((one, True) for one in ("2024", "1.10", "-3", "0x1f", "true", "FALSE", ".inf", "1e3")),
        *((one, False) for one in ("'2024'", "v2024", "2024-01", "yes", "1.2.3", "a")),
    ],
)
def test_a_name_that_other_readers_take_for_a_number_is_a_name_with_a_note(value: str, untyped: bool) -> None:
    made = manifest(f"name: {value}\ndescription: b")
    assert made.name == value.strip("'")
    assert ("lint.not-text" in {one.rule_id for one in made.findings}) is untyped


@pytest.mark.parametrize("value", ["", "~", "null", "''", "' '"])
def test_a_skill_without_a_name_has_that_of_its_folder(value: str) -> None:
    made = manifest(f"name: {value}\ndescription: b", folder="pdf-forms")
    assert made.name == "pdf-forms"
    assert [one.rule_id for one in made.findings] == ["lint.name-missing"]
    assert [one.rule_id for one in manifest(f"name: {value}\ndescription: b").findings] == ["format.name"]


@pytest.mark.parametrize(
    ("name", "severity"),
    [
        ("Self-Improving + Proactive Agent", Severity.LOW),
        ("a--b", Severity.LOW),
        ("../../etc", Severity.LOW),
        ("google_maps", Severity.LOW),
        ("n" * 65, Severity.LOW),
        ("\u4f60\u597d", Severity.INFO),
        ("pdf-forms", None),
    ],
)
def test_a_name_of_any_letters_is_kept(name: str, severity: Severity | None) -> None:
    made = manifest(f"name: {name}\ndescription: b", folder=name)
    assert made.name == name
    assert [one.severity for one in made.findings] == ([severity] if severity else [])


@pytest.mark.parametrize(("length", "shown"), [(1024, 1024), (1025, 1024), (9000, 1024)])
def test_a_long_description_is_shown_shortened(length: int, shown: int) -> None:
    made = manifest(f"name: a\ndescription: {'d' * length}")
    assert len(made.description) == shown
    assert made.description.endswith("d" if length == shown else "d \u2026")
    assert [one.rule_id for one in made.findings] == ([] if length == shown else ["lint.description-length"])


def test_the_metadata_of_openclaw_is_kept_as_text() -> None:
    line = 'metadata: {"openclaw":{"requires":{"bins":["x"]},"install":[{"id":"a","bins":["x"],"os":[{"b":[1]}]}]}}'
    made = manifest(f"name: a\ndescription: b\n{line}")
    assert made.metadata["openclaw"].startswith('{"requires": {"bins": ["x"]}')
    assert [one.rule_id for one in made.findings] == ["lint.metadata"]


@pytest.mark.parametrize(
    ("lines", "internal"),
    [("metadata:\n  internal: true", True), ("metadata: {internal: false}", False), ("internal: true", False)],
)
def test_a_skill_can_be_marked_internal(lines: str, internal: bool) -> None:
    assert manifest(f"name: a\ndescription: b\n{lines}").internal is internal
