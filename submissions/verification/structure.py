"""The part of the pre-scan that looks at the files: compiled code, archives, pointers.

Its findings are treated like those of an engine. What the list of files shows is in ``package_plan``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from submissions.source.lfs.pointers import read_pointer
from submissions.verification.archives_inside import OpenedArchives
from submissions.verification.file_kinds import compiled_kind, is_shell_script
from submissions.verification.findings import Finding, FindingKind, Severity
from vskill.access_tokens.token_form import lines_with_tokens

# Part of the key of a verdict. Raise it with every change of a rule below.
VERSION = "5"
_MIB = 1024 * 1024
# Findings reported per rule. A package may hold 10,000 links.
_MAX_REPORTED = 20


@dataclass(frozen=True)
class PackageLimits:
    """The limits of one skill, in files and bytes, and the number of ``skills`` that are listed at once."""

    files: int = 500
    total_bytes: int = 10 * _MIB
    code_file_bytes: int = 512 * 1024
    skill_md_bytes: int = 512 * 1024
    frontmatter_bytes: int = 16 * 1024
    skills: int = 5000


def check_files(files: Mapping[str, bytes], not_fetched: Mapping[str, str] | None = None) -> list[Finding]:
    """Return findings about compiled code and pointers of Git LFS, whatever the names of the files.

    ``files`` maps each path to the first 1,024 bytes of the file, or to more. ``not_fetched`` has the reasons why
    pointers are still there, by path.
    """
    found: list[Finding] = []
    for path, content in sorted(files.items()):
        if (pointer := read_pointer(content)) is not None:
            found.append(pointer_note(path, pointer.size, (not_fetched or {}).get(path, "")))
        compiled = compiled_kind(path, content)
        if compiled is not None:
            found.append(
                Finding(
                    rule_id="structure.compiled",
                    severity=Severity.HIGH,
                    title=f"Compiled code: {compiled}",
                    file=path,
                    why="Nobody can read what it does, and it may do something else than the source beside it.",
                    advice="Take it out and ship the source; add __pycache__ and build output to .gitignore.",
                )
            )
    return limit_per_rule(found)


def check_tokens(path: str, content: bytes) -> list[Finding]:
    """Return a finding for each line of a file on which an access token of a registry stands; none shows the token."""
    return [
        Finding(
            rule_id="structure.access-token",
            severity=Severity.HIGH,
            kind=FindingKind.EXPOSURE,
            title="An access token of a skill registry",
            file=path,
            line=line,
            why="Whoever reads this skill can work in the name of the token's owner.",
            advice="Revoke the token first: it stays in the history of the repository. Then take it out.",
        )
        for line in lines_with_tokens(content)
    ]


def pointer_note(path: str, size: int, reason: str = "") -> Finding:
    """Return the note about a file that is only a pointer of Git LFS to one of ``size`` bytes.

    ``reason`` says why that was not fetched, '' where it was not tried.
    """
    tried = f" It was not fetched, because {reason}." if reason else ""
    return Finding(
        rule_id="structure.lfs-pointer",
        severity=Severity.MEDIUM,
        title=f"A pointer of Git LFS instead of a file of {size:,} bytes",
        file=path,
        why=f"The file itself is not in the repository.{tried} Whoever installs this skill gets the pointer.",
        advice="Commit the file itself, or let the skill say where to get it.",
    )


def fetched_note(path: str, size: int | None) -> Finding:
    """Return the note about a file of ``size`` bytes that came from Git LFS; None is before it is fetched."""
    title = "A file that is kept in Git LFS; it is fetched from there when the skill is checked"
    if size is not None:
        title = f"A file of {size:,} bytes that is kept in Git LFS, and was fetched from there"
    return Finding(
        rule_id="structure.lfs-file",
        severity=Severity.LOW,
        title=title,
        file=path,
        why="Clients on machines without git-lfs install a pointer instead of it from the repository.",
        advice="Commit the file itself, if it is small.",
    )


def check_archives(archives: OpenedArchives) -> list[Finding]:
    """Return a note for each archive that was opened, and a finding that holds the skill for each that was not."""
    found = [
        Finding(
            rule_id="structure.archive",
            severity=Severity.LOW,
            title=f"An archive inside the skill; what is in it was checked as well: {count:,} file{'s' * (count != 1)}",
            file=path,
            why="People who look at the repository do not see what is in it.",
            advice="Commit the unpacked files, so that people can read them.",
        )
        for path, count in sorted(archives.opened.items())
    ]
    found += [
        Finding(
            rule_id="structure.archive-unread",
            severity=Severity.HIGH,
            title=f"An archive inside the skill was not opened: {reason}",
            file=path,
            why="No check has read what is in it.",
            advice="Commit the unpacked files, so that people and scanners can read them.",
        )
        for path, reason in sorted(archives.unread.items())
    ]
    return limit_per_rule(found)


def capabilities_of(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the capabilities that the types of the files show, named as the engines name them.

    ``files`` is as in ``check_files``. Engines look for shell calls in other languages; a shell script is one itself.
    """
    return ("shell_execution",) if any(is_shell_script(path, content) for path, content in files.items()) else ()


def limit_per_rule(found: Iterable[Finding]) -> list[Finding]:
    """Return the findings without those beyond a number that people read, for each rule."""
    counts: dict[str, int] = {}
    kept: list[Finding] = []
    for finding in found:
        counts[finding.rule_id] = counts.get(finding.rule_id, 0) + 1
        if counts[finding.rule_id] <= _MAX_REPORTED:
            kept.append(finding)
    return kept
