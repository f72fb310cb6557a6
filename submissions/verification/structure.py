"""The pre-scan: check the list of files of a package before any is read, and the first bytes of each afterwards.

Findings of the kind ``format`` stop the package and tell its author what to change; they accuse nobody. The others are
treated like those of an engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from submissions.source.tree_entries import MODE_LINK, MODE_SUBMODULE, TreeEntry, collisions, odd_name
from submissions.verification.findings import Finding, FindingKind, Severity

# Part of the key of a verdict. Raise it with every change of a rule below.
VERSION = "2"
_MIB = 1024 * 1024
# Findings reported per rule. A package may hold 10,000 links.
_MAX_REPORTED = 20

_ARCHIVES = re.compile(
    r"\.(zip|tar|tgz|tbz2?|txz|tzst|gz|bz2|xz|zst|lz4?|lzma|br|7z|rar|cab|arj|iso|dmg|img|jar|war|ear|apk|aar|whl|egg"
    r"|gem|crate|nupkg|vsix|crx|xpi|deb|rpm|msi|pkg|skill|mcpb|dxt|asar|cpio|ar)$",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"(\.(py[wi]?|ipynb|m?[jt]sx?|[cm][jt]s|vue|svelte|sh|bash|zsh|fish|ksh|ps[md]?1|bat|cmd|vbs|wsf|hta|rb|pl|pm|php"
    r"|lua|r|jl|go|rs|c|cc|cpp|cxx|h|hpp|cs|fs|vb|java|kts?|scala|groovy|gradle|swift|m|mm|dart|exs?|erl|hs|ml|clj|tcl"
    r"|awk|sed|sql|applescript|scpt|nix|mk|cmake|tf|wat)|(^|/)(makefile|dockerfile|justfile|rakefile|gemfile))$",
    re.IGNORECASE,
)
_DOCUMENT = re.compile(r"\.(doc|xls|ppt)[xm]$|\.(dot|xlt|pot|pps)[xm]$|\.od[tspg]$|\.epub$|\.kmz$", re.IGNORECASE)
_COMPILED = re.compile(r"\.(py[co]|class|so(\.\d+)*|dll|dylib|exe|com|scr|o|a|lib|obj|node|pyd|wasm|elc|beam)$", re.I)
_ARCHIVE_MAGIC = (
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!\x1a\x07", "rar"),
    (b"MSCF", "cabinet"),
    (b"!<arch>\n", "ar"),
)
_COMPILED_MAGIC = (
    (b"\x7fELF", "a Linux program or library"),
    (b"\xcf\xfa\xed\xfe", "a macOS program or library"),
    (b"\xce\xfa\xed\xfe", "a macOS program or library"),
    (b"\xca\xfe\xba\xbe", "a macOS program or Java class"),
    (b"\x00asm", "a WebAssembly module"),
    (b"dex\n", "an Android program"),
)
_TAR_MAGIC_OFFSET = 257
_SHELL_SCRIPT = re.compile(r"\.(sh|bash|zsh|fish|ksh|ps[md]?1|bat|cmd)$", re.IGNORECASE)
_SHELL_SHEBANG = re.compile(rb"#![^\n]*\b(sh|bash|zsh|fish|ksh|dash|pwsh)\b")


@dataclass(frozen=True)
class PackageLimits:
    """The limits of one skill, in files and bytes, and the number of ``skills`` that are listed at once."""

    files: int = 500
    total_bytes: int = 10 * _MIB
    code_file_bytes: int = 512 * 1024
    skill_md_bytes: int = 256 * 1024
    frontmatter_bytes: int = 16 * 1024
    skills: int = 5000


def check_entries(entries: Iterable[TreeEntry], limits: PackageLimits) -> list[Finding]:
    """Return what is wrong with the list of files of a package (paths relative to it), without reading any."""
    listed = sorted(entries, key=lambda entry: entry.path)
    found: list[Finding] = []
    if len(listed) > limits.files:
        found.append(
            _format_finding(
                "too-many-files",
                f"The skill has {len(listed):,} files; {limits.files:,} are allowed",
                advice="Leave out what the skill does not need, such as dependencies and build output.",
            )
        )
    total = sum(entry.size or 0 for entry in listed)
    if total > limits.total_bytes:
        largest = max(listed, key=lambda entry: entry.size or 0)
        found.append(
            _format_finding(
                "too-large",
                f"The skill has {total / _MIB:,.1f} MiB; {limits.total_bytes / _MIB:,.0f} MiB are allowed",
                file=largest.path,
                advice="Make the largest files smaller, or let the skill say where to get them.",
            )
        )
    for entry in listed:
        found.extend(_check_entry(entry, limits))
    found.extend(
        _format_finding(
            "colliding-names",
            "Two names differ only by case or by the way their letters are composed",
            file=second,
            excerpt=first,
            advice="Rename one of them: on Windows and macOS they are one file.",
        )
        for first, second in collisions(listed)
    )
    return _limit_per_rule(found)


def _check_entry(entry: TreeEntry, limits: PackageLimits) -> Iterable[Finding]:
    if entry.mode == MODE_LINK:
        yield _format_finding("link", "A symbolic link", file=entry.path, advice="Put a copy of the file in its place.")
    elif entry.mode == MODE_SUBMODULE:
        yield _format_finding(
            "submodule", "A git submodule", file=entry.path, advice="Commit the files themselves into the folder."
        )
    elif not entry.is_regular:
        yield _format_finding(
            "file-type", f"A file of mode {entry.mode}", file=entry.path, advice="Use plain files only."
        )
    reason = odd_name(entry.path)
    if reason is not None:
        yield _format_finding(
            "name", f"A file name that cannot be used: {reason}", file=entry.path, advice="Rename the file."
        )
    if entry.is_regular and _ARCHIVES.search(entry.path):
        yield _archive_finding(entry.path)
    if entry.is_regular and (entry.size or 0) > limits.code_file_bytes and _is_code(entry):
        yield _format_finding(
            "code-size",
            f"A code file of {(entry.size or 0) // 1024:,} KiB; {limits.code_file_bytes // 1024:,} KiB are allowed",
            file=entry.path,
            advice="Split it, or replace bundled and generated code by its source.",
        )


def check_files(files: Mapping[str, bytes]) -> list[Finding]:
    """Return findings about archives and compiled code, whatever the names of the files.

    ``files`` maps each path to the first 1,024 bytes of the file, or to more.
    """
    found: list[Finding] = []
    for path, content in sorted(files.items()):
        archive = next((name for magic, name in _ARCHIVE_MAGIC if content.startswith(magic)), None)
        if archive is None and content[_TAR_MAGIC_OFFSET : _TAR_MAGIC_OFFSET + 5] == b"ustar":
            archive = "tar"
        is_document = archive == "zip" and _DOCUMENT.search(path) is not None
        if archive is not None and not is_document and not _ARCHIVES.search(path):
            found.append(_archive_finding(path, archive))
        compiled = _compiled_kind(path, content)
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
    return _limit_per_rule(found)


def capabilities_of(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the capabilities that the types of the files show, named as the engines name them.

    ``files`` is as in ``check_files``. Engines look for shell calls in other languages; a shell script is one itself.
    """
    shell = any(_SHELL_SCRIPT.search(path) or _SHELL_SHEBANG.match(content) for path, content in files.items())
    return ("shell_execution",) if shell else ()


def _compiled_kind(path: str, content: bytes) -> str | None:
    for magic, name in _COMPILED_MAGIC:
        if content.startswith(magic):
            return name
    if content.startswith(b"MZ") and b"\0" in content[:64]:
        return "a Windows program or library"
    is_binary = b"\0" in content[:1024]
    return f"a {PurePosixPath(path).suffix} file" if is_binary and _COMPILED.search(path) else None


def _is_code(entry: TreeEntry) -> bool:
    return entry.executable or _CODE.search(entry.path) is not None


def _archive_finding(path: str, kind: str = "") -> Finding:
    return _format_finding(
        "nested-archive",
        f"An archive inside the skill{f' ({kind})' if kind else ''}",
        file=path,
        advice="Commit the unpacked files, so that people and scanners can read them.",
    )


def _format_finding(rule: str, title: str, *, file: str = "", excerpt: str = "", advice: str) -> Finding:
    return Finding(
        rule_id=f"format.{rule}",
        severity=Severity.MEDIUM,
        kind=FindingKind.FORMAT,
        title=title,
        file=file,
        excerpt=excerpt,
        why="A skill must be the same readable files for everybody who installs it.",
        advice=advice,
    )


def _limit_per_rule(found: list[Finding]) -> list[Finding]:
    counts: dict[str, int] = {}
    kept: list[Finding] = []
    for finding in found:
        counts[finding.rule_id] = counts.get(finding.rule_id, 0) + 1
        if counts[finding.rule_id] <= _MAX_REPORTED:
            kept.append(finding)
    return kept
