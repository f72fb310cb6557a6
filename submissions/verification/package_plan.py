"""Decide from the list of files alone which of them a package holds, and note whatever is unusual about it.

Findings of the kind ``format`` stop the package. Those of severity HIGH hold it for a person. The others are notes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from submissions.source.blobs import read_blobs
from submissions.source.file_source import FileSource
from submissions.source.tree_entries import MODE_SUBMODULE, TreeEntry, collisions, odd_name, unusual_name
from submissions.verification.file_kinds import is_code
from submissions.verification.findings import Finding, FindingKind, Severity
from submissions.verification.format_findings import lint
from submissions.verification.links import MAX_LINK_BYTES, Astray, Links
from submissions.verification.structure import PackageLimits, limit_per_rule

SKILL_FILE = "SKILL.md"
_MIB = 1024 * 1024
_SYSTEM_FILES = frozenset({".DS_Store"})
_SYSTEM_FOLDERS = frozenset({"__MACOSX"})
_NAMED = 3


@dataclass
class PackagePlan:
    """The files of a package: under which path each is offered, and the entry whose bytes it gets."""

    files: dict[str, TreeEntry] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def is_skill_file(path: str) -> bool:
    """Return whether a path is that of a SKILL.md, in whatever spelling."""
    return path.rpartition("/")[2].lower() == SKILL_FILE.lower()


def without_system_files(entries: Iterable[TreeEntry]) -> list[TreeEntry]:
    """Return the entries that are no files of an operating system, which no package holds."""
    return [entry for entry in entries if not _is_of_a_system(entry.path)]


async def read_links(source: FileSource, entries: Iterable[TreeEntry]) -> dict[str, bytes]:
    """Return what the links among ``entries`` hold, by their git ids, as far as they were fetched."""
    wanted = await asyncio.to_thread(_small_links, entries)
    return {entry.oid: content async for entry, content in read_blobs(source, wanted.values())}


def _small_links(entries: Iterable[TreeEntry]) -> dict[str, TreeEntry]:
    return {
        entry.oid: entry
        for entry in entries
        if entry.is_link and entry.size is not None and entry.size <= MAX_LINK_BYTES
    }


def plan_package(
    root: str, entries: Sequence[TreeEntry], link_targets: Mapping[str, bytes], limits: PackageLimits
) -> PackagePlan:
    """Return which files the package of a skill holds, and the findings about the rest.

    ``root`` is the skill's folder in the repository ('' for the root). ``entries`` are all that lie below it, with
    paths relative to it. ``link_targets`` maps the git ids of links to what they hold. ``limits`` bound the package.
    """
    plan = PackagePlan()
    ordered = sorted(entries, key=lambda entry: entry.path)
    system = [entry.path for entry in ordered if _is_of_a_system(entry.path)]
    kept = without_system_files(ordered)
    if system:
        plan.findings.append(_left_out(system))
    plan.findings += _nested_skills(kept)
    if len(kept) > limits.files:
        plan.findings.append(_too_many(len(kept), limits))
        kept = kept[: limits.files]
    links = Links(root, {entry.path: entry for entry in kept}, link_targets)
    spelling = _skill_file_of(kept)
    for entry in kept:
        _add(plan, entry, links, spelling)
    _leave_out_collisions(plan)
    _check_limits(plan, limits)
    plan.findings = limit_per_rule(plan.findings)
    return plan


def _skill_file_of(entries: Sequence[TreeEntry]) -> str:
    """Return the path of the skill's own SKILL.md; that spelling wins over any other."""
    found = [entry.path for entry in entries if "/" not in entry.path and is_skill_file(entry.path)]
    return SKILL_FILE if SKILL_FILE in found else next(iter(found), SKILL_FILE)


def _add(plan: PackagePlan, entry: TreeEntry, links: Links, skill_file: str) -> None:
    reason = odd_name(entry.path)
    if reason is not None:
        plan.findings.append(
            _holding("name", f"A file that cannot be carried, and was left out: {reason}", entry.path, "Rename it.")
        )
        return
    if (unusual := unusual_name(entry.path)) is not None:
        plan.findings.append(lint("file-name", f"An unusual file name: {unusual}", entry.path, "Rename it.", line=None))
    if entry.is_link and entry.size is None:
        # A list of skills is made of what is cheap to fetch. It is looked at when the skill is checked.
        return
    if entry.is_link:
        _add_link(plan, entry, links, skill_file)
    elif entry.mode == MODE_SUBMODULE:
        plan.findings.append(
            _note(
                "submodule",
                "A git submodule, which is another repository: its files were left out",
                entry.path,
                "Commit the files themselves into the folder.",
            )
        )
    elif not entry.is_regular:
        plan.findings.append(
            _holding("file-type", f"A file of mode {entry.mode}, which was left out", entry.path, "Use plain files.")
        )
    else:
        plan.files[SKILL_FILE if entry.path == skill_file else entry.path] = entry


def _add_link(plan: PackagePlan, entry: TreeEntry, links: Links, skill_file: str) -> None:
    found = links.files_of(entry.path)
    advice = "Put a copy of the file in its place."
    if found is Astray.OUTSIDE:
        # Clients that copy what it leads to would copy files that nobody has checked here.
        plan.findings.append(_holding("link", f"A symbolic link was left out: {found}", entry.path, advice))
    elif isinstance(found, Astray):
        plan.findings.append(_note("link", f"A symbolic link was left out: {found}", entry.path, advice))
    else:
        for path, target in found.items():
            if odd_name(path) is None:
                plan.files[SKILL_FILE if path == skill_file else path] = target
        what = "by the file" if entry.path in found else "by the files of the folder"
        plan.findings.append(
            _note("link", f"A symbolic link was replaced {what} that it leads to", entry.path, advice, Severity.LOW)
        )


def _leave_out_collisions(plan: PackagePlan) -> None:
    for first, second in collisions(plan.files):
        loser = first if second == SKILL_FILE else second
        plan.files.pop(loser, None)
        for path in [path for path in plan.files if path.startswith(f"{loser}/")]:
            del plan.files[path]
        plan.findings.append(
            _holding(
                "colliding-names",
                "Two names differ only by case or by the way their letters are composed; one was left out",
                loser,
                "Rename one of them: on Windows and macOS they are one file.",
                excerpt=second if loser == first else first,
            )
        )


def _check_limits(plan: PackagePlan, limits: PackageLimits) -> None:
    if len(plan.files) > limits.files:
        plan.findings.append(_too_many(len(plan.files), limits))
    total = sum(entry.size or 0 for entry in plan.files.values())
    if total > limits.total_bytes:
        largest = max(plan.files, key=lambda path: plan.files[path].size or 0)
        plan.findings.append(
            _stopping(
                "too-large",
                f"The skill has {total / _MIB:,.1f} MiB; {limits.total_bytes / _MIB:,.0f} MiB are allowed",
                largest,
                "Make the largest files smaller, or let the skill say where to get them.",
            )
        )
    for path, entry in plan.files.items():
        if (entry.size or 0) > limits.code_file_bytes and (entry.executable or is_code(path)):
            plan.findings.append(
                _holding(
                    "code-size",
                    f"A code file of {(entry.size or 0) // 1024:,} KiB, which is too long to be read by a person; "
                    f"from {limits.code_file_bytes // 1024:,} KiB on, one looks at it",
                    path,
                    "Split it, or replace bundled and generated code by its source.",
                )
            )


def _nested_skills(entries: Sequence[TreeEntry]) -> Iterator[Finding]:
    inner = [entry.path for entry in entries if "/" in entry.path and is_skill_file(entry.path)]
    if inner:
        yield lint(
            "nested-skill",
            f"The folder holds {_counted(inner, 'other skill')}, which the package of this one carries as well",
            inner[0],
            "Put each skill into a folder of its own, if they are not meant as one.",
            line=None,
        )


def _left_out(paths: Sequence[str]) -> Finding:
    title = f"Left out as files of an operating system and not of the skill: {_counted(paths, 'file')}"
    return lint("left-out", title, paths[0], "Add such names to .gitignore.", line=None)


def _counted(paths: Sequence[str], noun: str) -> str:
    shown = ", ".join(paths[:_NAMED]) + (", \u2026" if len(paths) > _NAMED else "")
    return f"{len(paths):,} {noun}{'s' if len(paths) > 1 else ''} ({shown})"


def _is_of_a_system(path: str) -> bool:
    *folders, name = path.split("/")
    return name in _SYSTEM_FILES or name.startswith("._") or not _SYSTEM_FOLDERS.isdisjoint(folders)


def _too_many(count: int, limits: PackageLimits) -> Finding:
    title = f"The skill has {count:,} files; {limits.files:,} are allowed"
    return _stopping("too-many-files", title, "", "Leave out what it does not need, such as dependencies and builds.")


def _stopping(rule: str, title: str, file: str, advice: str) -> Finding:
    why = "A skill must be the same readable files for everybody who installs it."
    return Finding(f"format.{rule}", Severity.MEDIUM, title, file, why=why, advice=advice, kind=FindingKind.FORMAT)


def _holding(rule: str, title: str, file: str, advice: str, *, excerpt: str = "") -> Finding:
    why = "What is installed from here would differ from what is in the repository, or nobody can read it."
    return Finding(f"structure.{rule}", Severity.HIGH, title, file, excerpt=excerpt, why=why, advice=advice)


def _note(rule: str, title: str, file: str, advice: str, severity: Severity = Severity.MEDIUM) -> Finding:
    why = "What is installed from here differs from what is in the repository."
    return Finding(f"structure.{rule}", severity, title, file, why=why, advice=advice)
