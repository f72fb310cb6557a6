"""Finding the skills of a repository, and reading one of them."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import pytest

from submissions.review.lines import shown_line
from submissions.verification.errors import InvalidPackage
from submissions.verification.findings import Finding, Severity
from submissions.verification.found_skills import find_skills
from submissions.verification.package_contents import PackageFile, hash_files
from submissions.verification.packages import SkillPackage, files_of_package, read_package
from submissions.verification.structure import PackageLimits
from submissions.verification.verdict import Verdict, VerdictPolicy, decide
from tests.git_factory import git, make_repository, skill_md
from tests.submissions.source.conftest import Fetch
from vskill.access_tokens.token_form import REMOVED, new_token

FULL = """---
name: pdf-forms
description: >-
  Fills in
  PDF forms.
license: Apache-2.0
compatibility: Needs Python 3.11
metadata:
  version: 1.10
  author: Acme
  tags: [a, b]
allowed-tools: Bash(git add:*) Read, Write Read
homepage: https://example.org
---

# PDF forms

---
Body.
"""


def new_folder(path: Path) -> Path:
    path.mkdir()
    return path


async def read(fetch: Fetch, tmp_path: Path, files: dict[str, bytes | str], path: str = "") -> SkillPackage:
    repository = make_repository(tmp_path / "r.git", files)
    return await read_package(await fetch(repository), path, destination=new_folder(tmp_path / "out"))


async def test_every_folder_with_a_skill_md_is_found(tmp_path: Path, fetch: Fetch) -> None:
    repository = make_repository(
        tmp_path / "r.git",
        {
            "SKILL.md": skill_md("root-skill"),
            "skills/a/SKILL.md": skill_md("a"),
            "skills/a/inner/SKILL.md": skill_md("inner"),
            "skills/b/skill.md": skill_md("b"),
            "skills/c/SKILL.md": "no frontmatter",
            "docs/MY-SKILL.md": skill_md("not-a-skill"),
            "SKILL.md.txt": skill_md("not-a-skill"),
        },
    )
    skills = await find_skills(await fetch(repository))
    assert [(skill.path, skill.name, skill.problems) for skill in skills] == [
        ("", "root-skill", ()),
        ("skills/a", "a", ()),
        ("skills/a/inner", "inner", ()),
        ("skills/b", "b", ()),
        ("skills/c", "c", ("SKILL.md has no frontmatter",)),
    ]


async def test_the_usual_spelling_wins_over_another_one(tmp_path: Path, fetch: Fetch) -> None:
    repository = make_repository(tmp_path / "r.git", {"skill.md": skill_md("small"), "SKILL.md": skill_md("large")})
    assert [skill.name for skill in await find_skills(await fetch(repository))] == ["large"]


async def test_every_field_of_the_frontmatter_is_read_as_text(tmp_path: Path, fetch: Fetch) -> None:
    package = await read(fetch, tmp_path, {"pdf-forms/SKILL.md": FULL}, "pdf-forms")
    assert (package.name, package.description) == ("pdf-forms", "Fills in PDF forms.")
    assert (package.license, package.compatibility) == ("Apache-2.0", "Needs Python 3.11")
    assert package.metadata == {"version": "1.10", "author": "Acme", "tags": '["a", "b"]'}
    assert package.version == "1.10"
    assert package.skill_md == FULL


async def test_harmless_deviations_from_the_specification_are_notes(tmp_path: Path, fetch: Fetch) -> None:
    package = await read(fetch, tmp_path, {"forms/SKILL.md": FULL}, "forms")
    assert {(finding.rule_id, finding.severity) for finding in package.findings} == {
        ("lint.unknown-field", Severity.LOW),
        ("lint.metadata", Severity.LOW),
        ("lint.name-folder", Severity.LOW),
    }


@pytest.mark.parametrize(
    ("lines", "version"),
    [
        ("version: 1.2.3", "1.2.3"),
        ("version: v2", "v2"),
        ("version: 1.0.0-beta.1", "1.0.0-beta.1"),
        ("metadata:\n  version: '3.1'", "3.1"),
        ("version: 2.0.0\nmetadata:\n  version: 1.0.0", "2.0.0"),
        ("version: latest and greatest", ""),
        ("version: [1]", ""),
        ("license: MIT", ""),
    ],
)
async def test_a_version_is_taken_from_either_place(tmp_path: Path, fetch: Fetch, lines: str, version: str) -> None:
    text = f"---\nname: hello\ndescription: Hello.\n{lines}\n---\n"
    assert (await read(fetch, tmp_path, {"SKILL.md": text})).version == version


async def test_the_content_hash_is_made_of_sorted_records_of_path_and_digest(tmp_path: Path, fetch: Fetch) -> None:
    files: dict[str, bytes | str] = {"SKILL.md": skill_md(), "a/b": b"\0\xff", "a-b": "", "\u00e9": "x"}
    package = await read(fetch, tmp_path, files)
    records = b""
    for path in sorted(files, key=str.encode):
        content = files[path]
        raw = content.encode() if isinstance(content, str) else content
        records += path.encode() + b"\0" + hashlib.sha256(raw).hexdigest().encode() + b"\n"
    assert package.content_hash == hashlib.sha256(records).hexdigest()
    assert [file.path for file in package.files] == ["SKILL.md", "a-b", "a/b", "\u00e9"]


async def test_the_content_hash_depends_on_paths_and_bytes_alone(tmp_path: Path, fetch: Fetch) -> None:
    one = make_repository(tmp_path / "1.git", {"s/SKILL.md": skill_md(), "s/run": "x"})
    two = make_repository(tmp_path / "2.git", {"t/u/SKILL.md": skill_md()}, executables={"t/u/run": "x"})
    first = await read_package(await fetch(one), "s", destination=new_folder(tmp_path / "1"))
    second = await read_package(await fetch(two), "t/u", destination=new_folder(tmp_path / "2"))
    assert first.content_hash == second.content_hash
    assert [file.executable for file in second.files] == [False, True]


def test_moving_a_byte_from_a_name_into_another_changes_the_hash() -> None:
    digest = "0" * 64
    hashes = {
        hash_files([PackageFile("a", 1, digest, False), PackageFile("b", 1, digest, False)]),
        hash_files([PackageFile("ab", 1, digest, False)]),
        hash_files([PackageFile("b", 1, digest, False), PackageFile("aa", 1, digest, False)]),
        hash_files([]),
    }
    assert len(hashes) == 4


async def test_what_is_written_is_what_was_measured(tmp_path: Path, fetch: Fetch) -> None:
    package = await read(fetch, tmp_path, {"s/SKILL.md": skill_md(), "s/x/y": "y", "other": "z"}, "s")
    on_disk = {
        (str(path.relative_to(package.root)), path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in package.root.rglob("*")
        if path.is_file()
    }
    assert on_disk == {(file.path, file.size, file.sha256) for file in package.files}


async def test_line_end_and_ident_attributes_change_nothing(tmp_path: Path, fetch: Fetch) -> None:
    text = skill_md() + "$Id$\n"
    package = await read(fetch, tmp_path, {"SKILL.md": text, ".gitattributes": "* text eol=crlf ident\n"})
    assert package.skill_md == text
    assert (package.root / "SKILL.md").read_bytes() == text.encode()


@pytest.mark.parametrize(
    ("path", "content", "what"),
    [
        ("run", b"\x7fELF\2\1\1" + bytes(60), "a Linux program or library"),
        ("tool.bin", b"MZ" + bytes(100), "a Windows program or library"),
        ("__pycache__/x.cpython-311.pyc", b"\xa7\r\r\n" + bytes(100), "a .pyc file"),
        ("x.wasm", b"\0asm\1\0\0\0", "a WebAssembly module"),
    ],
)
async def test_compiled_code_is_a_finding_that_does_not_stop_the_package(
    tmp_path: Path, fetch: Fetch, path: str, content: bytes, what: str
) -> None:
    package = await read(fetch, tmp_path, {"SKILL.md": skill_md("hello"), path: content})
    assert [(f.rule_id, f.severity, f.file, f.title) for f in package.findings] == [
        ("structure.compiled", Severity.HIGH, path, f"Compiled code: {what}")
    ]


async def test_office_documents_are_no_archives(tmp_path: Path, fetch: Fetch) -> None:
    files: dict[str, bytes | str] = {"SKILL.md": skill_md("hello"), "template.docx": b"PK\3\4" + bytes(50)}
    assert (await read(fetch, tmp_path, files)).findings == ()


@pytest.mark.parametrize("path", ["absent", "s/SKILL.md", "../r", "s/../s", "/", "docs"])
async def test_a_path_without_a_skill_is_an_answer(tmp_path: Path, fetch: Fetch, path: str) -> None:
    with pytest.raises(InvalidPackage, match="There is no skill") as caught:
        await read(fetch, tmp_path, {"s/SKILL.md": skill_md(), "docs/x": "x"}, path)
    assert [finding.rule_id for finding in caught.value.findings] == ["format.skill-file"]


async def test_limits_are_inclusive(tmp_path: Path, fetch: Fetch) -> None:
    text = skill_md("hello")
    snapshot = await fetch(make_repository(tmp_path / "r.git", {"SKILL.md": text, "a.py": "x" * 100}))
    exact = PackageLimits(
        files=2, total_bytes=len(text) + 100, code_file_bytes=100, skill_md_bytes=len(text), frontmatter_bytes=52
    )
    assert len(text.split("---\n")[1]) - 1 == 52
    package = await read_package(snapshot, "", destination=new_folder(tmp_path / "out"), limits=exact)
    assert package.name == "hello"
    for field in ("files", "total_bytes", "code_file_bytes", "skill_md_bytes", "frontmatter_bytes"):
        tighter = PackageLimits(**{**vars(exact), field: getattr(exact, field) - 1})
        destination = new_folder(tmp_path / field)
        if field == "code_file_bytes":
            held = await read_package(snapshot, "", destination=destination, limits=tighter)
            assert [finding.rule_id for finding in held.findings] == ["structure.code-size"]
            continue
        with pytest.raises(InvalidPackage):
            await read_package(snapshot, "", destination=destination, limits=tighter)


async def test_reading_needs_no_host_any_more(tmp_path: Path, fetch: Fetch) -> None:
    repository = make_repository(tmp_path / "r.git", {"SKILL.md": skill_md("hello")})
    snapshot = await fetch(repository)
    git(repository, "update-ref", "-d", "refs/heads/main")
    (repository / "HEAD").unlink()
    assert [skill.name for skill in await find_skills(snapshot)] == ["hello"]


async def test_files_of_an_operating_system_do_not_count(tmp_path: Path, fetch: Fetch) -> None:
    noise = {f"img/._{n}": b"\0" for n in range(600)}
    files: dict[str, bytes | str] = {"SKILL.md": skill_md("hello"), "img/a.md": "x", **noise}
    repository = make_repository(tmp_path / "r.git", files)
    snapshot = await fetch(repository)
    chosen = files_of_package("").choose(snapshot.entries)
    assert [entry.path for entry in chosen] == ["SKILL.md", "img/a.md"]
    package = await read_package(snapshot, "", destination=new_folder(tmp_path / "out"))
    assert [file.path for file in package.files] == ["SKILL.md", "img/a.md"]


async def test_what_archives_hold_lies_beside_the_package_and_is_no_part_of_it(tmp_path: Path, fetch: Fetch) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("bin/run.sh", "ls\n")
    package = await read(fetch, tmp_path, {"SKILL.md": skill_md("hello"), "t/a.zip": out.getvalue()})
    assert [file.path for file in package.files] == ["SKILL.md", "t/a.zip"]
    assert (package.root / "t/a.zip!/bin/run.sh").read_text() == "ls\n"
    assert package.capabilities == ("shell_execution",)
    assert package.inert == {"t/a.zip"}


async def test_a_folder_that_poses_as_the_inside_of_an_archive_holds(tmp_path: Path, fetch: Fetch) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("run.sh", "rm -rf /\n")
    files: dict[str, bytes | str] = {"SKILL.md": skill_md("hello"), "a.zip": out.getvalue(), "A.zip!/run.sh": "ls\n"}
    package = await read(fetch, tmp_path, files)
    assert (package.root / "A.zip!/run.sh").read_text() == "ls\n"
    assert [(one.rule_id, one.file) for one in package.findings] == [("structure.archive-unread", "a.zip")]


async def test_an_access_token_holds_wherever_it_was_left_and_is_not_shown(tmp_path: Path, fetch: Fetch) -> None:
    token, out = new_token(), io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bin/run.sh", f"ls\nexport KEY={token}\n")
    noise = "x" * 2000
    files: dict[str, bytes | str] = {
        "SKILL.md": f"{skill_md('hello')}\n{noise}\ncurl -H 'Authorization: Bearer {token}' https://registry.example\n",
        "a.zip": out.getvalue(),
        "fake.md": f"vsk_{'a' * 38}\n",
    }
    package = await read(fetch, tmp_path, files)
    found = [one for one in package.findings if one.rule_id == "structure.access-token"]
    lines = files["SKILL.md"].splitlines()
    assert sorted((one.file, one.line) for one in found) == [("SKILL.md", len(lines)), ("a.zip!/bin/run.sh", 2)]
    assert decide(found, [], VerdictPolicy(engines=())).verdict is Verdict.HELD
    assert token not in repr(package.findings)
    excerpt = Finding("x", Severity.HIGH, "x", excerpt=f"KEY={token}").excerpt
    assert (excerpt, shown_line(f"KEY={token}")) == (f"KEY={REMOVED}", f"KEY={REMOVED}")
