"""Tell what a file is from its name and its first bytes: code, a compiled program, an archive, or data that cannot run.

The first bytes are the first 1,024 of the file, or more.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

_ARCHIVES: Final = re.compile(
    r"\.(zip|tar|tgz|tbz2?|txz|tzst|gz|bz2|xz|zst|lz4?|lzma|br|7z|rar|cab|arj|iso|dmg|img|jar|war|ear|apk|aar|whl|egg"
    r"|gem|crate|nupkg|vsix|crx|xpi|deb|rpm|msi|pkg|skill|mcpb|dxt|asar|cpio|ar)$",
    re.IGNORECASE,
)
_CODE: Final = re.compile(
    r"(\.(py[wi]?|ipynb|m?[jt]sx?|[cm][jt]s|vue|svelte|sh|bash|zsh|fish|ksh|ps[md]?1|bat|cmd|vbs|wsf|hta|rb|pl|pm|php"
    r"|lua|r|jl|go|rs|c|cc|cpp|cxx|h|hpp|cs|fs|vb|java|kts?|scala|groovy|gradle|swift|m|mm|dart|exs?|erl|hs|ml|clj|tcl"
    r"|awk|sed|sql|applescript|scpt|nix|mk|cmake|tf|wat)|(^|/)(makefile|dockerfile|justfile|rakefile|gemfile))$",
    re.IGNORECASE,
)
_DOCUMENT: Final = re.compile(
    r"\.(doc|xls|ppt)[xm]$|\.(dot|xlt|pot|pps)[xm]$|\.od[tspg]$|\.epub$|\.kmz$", re.IGNORECASE
)
_COMPILED: Final = re.compile(
    r"\.(py[co]|class|so(\.\d+)*|dll|dylib|exe|com|scr|o|a|lib|obj|node|pyd|wasm|elc|beam|jar|war|ear|apk|aar|dex|msi"
    r"|pyz|lnk|chm|swf|scpt)$",
    re.IGNORECASE,
)
# Values of programs, which run code when they are loaded, and documents that carry macros.
_LOADED: Final = re.compile(r"\.(pkl|pickle|joblib|pth?|rds|rdata|(doc|xls|ppt|dot|xlt|pot)m|xlam|xll)$", re.IGNORECASE)
# Tables and records of which programs only read values.
_TABLES: Final = re.compile(r"\.(csv|tsv|jsonl|ndjson|geojson|fasta|fastq|vcf|pdb|cif|sdf|srt|vtt|po)$", re.IGNORECASE)
_ARCHIVE_MAGIC: Final = (
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
_COMPILED_MAGIC: Final = (
    (b"\x7fELF", "a Linux program or library"),
    (b"\xcf\xfa\xed\xfe", "a macOS program or library"),
    (b"\xce\xfa\xed\xfe", "a macOS program or library"),
    (b"\xca\xfe\xba\xbe", "a macOS program or Java class"),
    (b"\x00asm", "a WebAssembly module"),
    (b"dex\n", "an Android program"),
)
# Their first line is no command, so that no shell takes them for a script.
_PICTURE_MAGIC: Final = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")
_TAR_MAGIC_OFFSET: Final = 257
_SHELL_SCRIPT: Final = re.compile(r"\.(sh|bash|zsh|fish|ksh|ps[md]?1|bat|cmd)$", re.IGNORECASE)
_SHELL_SHEBANG: Final = re.compile(rb"#![^\n]*\b(sh|bash|zsh|fish|ksh|dash|pwsh)\b")


def archive_kind(path: str, beginning: bytes) -> str | None:
    """Return the kind of an archive by its first bytes, or by its name where these are no text, or None.

    An office document is no archive.
    """
    kind = next((name for magic, name in _ARCHIVE_MAGIC if beginning.startswith(magic)), None)
    if kind is None and beginning[_TAR_MAGIC_OFFSET : _TAR_MAGIC_OFFSET + 5] == b"ustar":
        kind = "tar"
    if kind == "zip" and is_document(path):
        return None
    return kind or (None if _is_text(beginning) else named_archive_kind(path))


def is_document(path: str) -> bool:
    """Return whether a name is that of an office document, a book or a map, which are archives inside."""
    return _DOCUMENT.search(path) is not None


def named_archive_kind(path: str) -> str | None:
    """Return the extension of a name that is an archive's, or None."""
    match = _ARCHIVES.search(path)
    return match[1].lower() if match is not None else None


def compiled_kind(path: str, beginning: bytes) -> str | None:
    """Return what compiled code a file is, in words, or None."""
    for magic, name in _COMPILED_MAGIC:
        if beginning.startswith(magic):
            return name
    if beginning.startswith(b"MZ") and b"\0" in beginning[:64]:
        return "a Windows program or library"
    return f"a {PurePosixPath(path).suffix} file" if b"\0" in beginning and _COMPILED.search(path) else None


def is_code(path: str) -> bool:
    """Return whether a name is that of source code or of a script."""
    return _CODE.search(path) is not None


def is_shell_script(path: str, beginning: bytes) -> bool:
    """Return whether a file is a script for a shell."""
    return _SHELL_SCRIPT.search(path) is not None or _SHELL_SHEBANG.match(beginning) is not None


def cannot_run(path: str, beginning: bytes, *, executable: bool) -> bool:
    """Return whether a file is data alone: a table, or bytes that neither people nor interpreters read as text.

    ``executable`` is the file's mode. Text is never data alone, because an agent follows it.
    """
    # No system runs a picture, whatever its mode says; what is put behind one is read.
    executable = executable and not beginning.startswith(_PICTURE_MAGIC)
    if executable or beginning.startswith(b"#!") or is_code(path) or compiled_kind(path, beginning) is not None:
        return False
    if _COMPILED.search(path) or _LOADED.search(path) or archive_kind(path, beginning) is not None:
        return False
    return _TABLES.search(path) is not None or b"\0" in beginning or beginning.startswith(b"%PDF-")


def _is_text(beginning: bytes) -> bool:
    # The end may be in the middle of a character.
    return b"\0" not in beginning and beginning.decode("utf-8", "ignore").encode() in (
        beginning,
        beginning[:-1],
        beginning[:-2],
        beginning[:-3],
    )
