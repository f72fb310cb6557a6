"""Find the SKILL.md of each folder, and read one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from submissions.source.tree_entries import TreeEntry
from submissions.verification.findings import Finding
from submissions.verification.format_findings import lint, problem
from submissions.verification.frontmatter import read_skill_md
from submissions.verification.links import Astray
from submissions.verification.manifest import Manifest, read_manifest
from submissions.verification.package_plan import SKILL_FILE, is_skill_file
from submissions.verification.skill_text import FrontmatterError
from submissions.verification.structure import PackageLimits


@dataclass(frozen=True)
class SkillFile:
    """One SKILL.md; ``text`` and ``manifest`` are empty when it cannot be read, and ``findings`` say why."""

    text: str
    manifest: Manifest
    findings: list[Finding]


def skill_files(entries: Iterable[TreeEntry]) -> dict[str, TreeEntry]:
    """Return the skill file of every folder that has one; the spelling SKILL.md wins over any other."""
    found: dict[str, TreeEntry] = {}
    for entry in entries:
        if not is_skill_file(entry.path):
            continue
        folder = folder_of(entry.path)
        if folder not in found or entry.path.endswith(SKILL_FILE):
            found[folder] = entry
    return found


def is_readable(entry: TreeEntry, limits: PackageLimits) -> bool:
    """Return whether a skill file is a plain file of a size that is read."""
    return entry.is_regular and entry.size is not None and entry.size <= limits.skill_md_bytes


def read_skill_file(
    folder: str, entry: TreeEntry, content: bytes | None, limits: PackageLimits, *, astray: Astray | None = None
) -> SkillFile:
    """Read the skill file of ``folder``.

    ``entry`` is the file, and ``content`` its bytes, or None when it is not readable. ``limits`` bound its frontmatter.
    ``astray`` says why ``entry``, which is a link, leads to no file of the skill.
    """
    findings: list[Finding] = []
    if not entry.path.endswith(SKILL_FILE):
        findings.append(
            lint(
                "skill-file-case",
                "The file is not spelled SKILL.md; it is offered as SKILL.md",
                entry.path,
                "Rename it to SKILL.md.",
            )
        )
    if content is None:
        if entry.is_regular:
            title = f"SKILL.md is larger than {limits.skill_md_bytes // 1024} KiB"
            advice = "Move details into files of their own that SKILL.md names."
        else:
            title = "SKILL.md is a submodule, not a file" if astray is None else f"SKILL.md is a link, and {astray}"
            advice = "Commit SKILL.md as a plain file, or let the link lead to a file in the folder of the skill."
        return SkillFile("", Manifest(), [*findings, problem("skill-file", title, file=entry.path, advice=advice)])
    try:
        document = read_skill_md(content, file=entry.path, max_bytes=limits.frontmatter_bytes)
    except FrontmatterError as error:
        return SkillFile("", Manifest(), [*findings, error.finding])
    manifest = read_manifest(document.fields, folder=name_of(folder), file=entry.path, untyped=document.untyped)
    return SkillFile(document.text, manifest, [*findings, *document.findings, *manifest.findings])


def folder_of(path: str) -> str:
    """Return the folder that a file lies in, '' for the root."""
    return path.rpartition("/")[0]


def name_of(folder: str) -> str:
    """Return the last part of the path of a folder."""
    return folder.rpartition("/")[2]
