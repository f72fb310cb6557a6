"""A folder of this machine gives what a commit of the same files gives, and nothing from outside of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from submissions.source.blobs import read_blob
from submissions.source.errors import FetchFailed, RepositoryTooLarge
from submissions.source.git_process import FetchLimits
from submissions.source.plain_folder import open_folder
from submissions.verification.errors import InvalidPackage
from submissions.verification.packages import SkillPackage, read_package
from tests.git_factory import make_repository, skill_md
from tests.submissions.source.conftest import Fetch

FILES: dict[str, bytes | str] = {
    "SKILL.md": skill_md(),
    "references/a b.md": "# Notes\n",
    "data.bin": b"\0\1\2",
    "é.txt": "x",
}


def write(root: Path, files: dict[str, bytes | str]) -> Path:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def new_folder(parent: Path, name: str) -> Path:
    (parent / name).mkdir(parents=True)
    return parent / name


async def read(root: Path, destination: Path, path: str = "") -> SkillPackage:
    return await read_package(open_folder(root), path, destination=destination)


async def test_a_folder_and_a_commit_of_it_are_the_same_package(tmp_path: Path, fetch: Fetch) -> None:
    script = "#!/bin/sh\necho hello\n"
    repository = make_repository(
        tmp_path / "r.git", FILES, executables={"run.sh": script}, symlinks={"again.md": "references/a b.md"}
    )
    snapshot = await fetch(repository)
    committed = await read_package(snapshot, "", destination=new_folder(tmp_path, "committed"))
    root = write(new_folder(tmp_path, "plain"), {**FILES, "run.sh": script})
    (root / "run.sh").chmod(0o755)
    (root / "again.md").symlink_to("references/a b.md")
    plain = await read(root, new_folder(tmp_path, "read"))
    assert plain.content_hash == committed.content_hash
    assert (plain.files, plain.findings) == (committed.files, committed.findings)
    assert [file.path for file in plain.files if file.executable] == ["run.sh"]
    assert "again.md" in {file.path for file in plain.files}


@pytest.mark.parametrize("target", ["../secret", "/etc/hostname", "../plain/../secret", "folder/../../secret"])
async def test_no_link_is_followed_out_of_the_folder(tmp_path: Path, target: str) -> None:
    (tmp_path / "secret").write_text("a secret")
    root = write(new_folder(tmp_path, "plain"), {"SKILL.md": skill_md(), "folder/x": "x"})
    (root / "notes.md").symlink_to(target)
    destination = new_folder(tmp_path, "read")
    package = await read(root, destination)
    assert {file.path for file in package.files} == {"SKILL.md", "folder/x"}
    assert [finding.rule_id for finding in package.findings] == ["structure.link"]
    assert not (destination / "notes.md").exists()


async def test_a_folder_behind_a_link_is_not_listed(tmp_path: Path) -> None:
    write(new_folder(tmp_path, "outside"), {"SKILL.md": skill_md()})
    root = write(new_folder(tmp_path, "plain"), {"SKILL.md": skill_md()})
    (root / "skills").symlink_to(tmp_path / "outside")
    assert [entry.path for entry in open_folder(root).entries] == ["SKILL.md", "skills"]


async def test_a_pipe_is_named_and_never_waited_for(tmp_path: Path) -> None:
    root = write(new_folder(tmp_path, "plain"), {"SKILL.md": skill_md()})
    os.mkfifo(root / "pipe")
    package = await read(root, new_folder(tmp_path, "read"))
    assert [finding.rule_id for finding in package.findings] == ["structure.file-type"]


async def test_a_file_that_became_a_link_or_a_pipe_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    root = write(new_folder(tmp_path, "plain"), {"a.txt": "public", "b.txt": "public"})
    source = open_folder(root)
    for name in ("a.txt", "b.txt"):
        (root / name).unlink()
    (root / "a.txt").symlink_to(tmp_path / "secret")
    os.mkfifo(root / "b.txt")
    for entry in source.entries:
        with pytest.raises(FetchFailed):
            await read_blob(source, entry)


async def test_a_file_that_changed_since_it_was_listed_is_said(tmp_path: Path) -> None:
    root = write(new_folder(tmp_path, "plain"), {"a.txt": "one"})
    source = open_folder(root)
    (root / "a.txt").write_text("longer")
    with pytest.raises(FetchFailed, match=r"a\.txt changed while it was read"):
        await read_blob(source, source.entries[0])


async def test_limits_and_format_are_those_of_a_commit(tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {f"{number}.txt": "x" for number in range(501)}
    root = write(new_folder(tmp_path, "plain"), {"SKILL.md": "no frontmatter", **files})
    with pytest.raises(InvalidPackage) as refused:
        await read(root, new_folder(tmp_path, "read"))
    assert {finding.rule_id for finding in refused.value.findings} >= {"format.too-many-files"}


def test_what_git_keeps_is_passed_over_and_the_list_is_bounded(tmp_path: Path) -> None:
    root = write(tmp_path, {".git/config": "x", "sub/.git": "gitdir: ..", "a": "x", "sub/b": "x"})
    assert [entry.path for entry in open_folder(root).entries] == ["a", "sub/b"]
    with pytest.raises(RepositoryTooLarge, match="more than 1 files"):
        open_folder(root, FetchLimits(listed_files=1))


def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path) -> None:
    with pytest.raises(FetchFailed, match="missing cannot be read"):
        open_folder(tmp_path / "missing")


async def test_a_name_that_is_no_text_is_a_finding(tmp_path: Path) -> None:
    root = write(new_folder(tmp_path, "plain"), {"SKILL.md": skill_md()})
    (root / os.fsdecode(b"caf\xe9.txt")).write_text("x")
    package = await read(root, new_folder(tmp_path, "read"))
    assert [finding.rule_id for finding in package.findings] == ["structure.name"]
