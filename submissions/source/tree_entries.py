"""The entries of a git tree, and which of their names may become files on a disk."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from vskill.hidden_characters import first_hidden

MODE_FILE = "100644"
MODE_FILE_GROUP_WRITABLE = "100664"
MODE_EXECUTABLE = "100755"
MODE_LINK = "120000"
MODE_SUBMODULE = "160000"
REGULAR_MODES = frozenset({MODE_FILE, MODE_FILE_GROUP_WRITABLE, MODE_EXECUTABLE})
MAX_PATH_LENGTH = 255
MAX_PATH_DEPTH = 16
_USTAR_NAME = 100
_USTAR_PREFIX = 155

# With the superscript digits, which Windows reads as digits there:
# https://learn.microsoft.com/en-us/windows/win32/fileio/naming-a-file
_WINDOWS_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$", "clock$"}
    | {f"{port}{digit}" for port in ("com", "lpt") for digit in "123456789\u00b9\u00b2\u00b3"}
)
_FORBIDDEN_CHARACTERS = frozenset('\\:*?"<>|')


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One line of ``git ls-tree -r``: a file, a link or a submodule, never a folder.

    ``path`` is relative to the root of the repository; bytes that are not UTF-8 are kept as surrogates, as
    ``os.fsdecode`` does. ``mode`` is git's octal text. ``size`` is in bytes, None for a submodule and for a file that
    was not asked for. ``oid`` is git's id of the content.
    """

    path: str
    mode: str
    size: int | None
    oid: str

    @property
    def is_regular(self) -> bool:
        """Tell whether this is a plain file, executable or not."""
        return self.mode in REGULAR_MODES

    @property
    def is_link(self) -> bool:
        """Tell whether this is a symbolic link; its content is the path that it leads to."""
        return self.mode == MODE_LINK

    @property
    def executable(self) -> bool:
        """Tell whether the file has the executable bit."""
        return self.mode == MODE_EXECUTABLE


def below(entries: Iterable[TreeEntry], prefix: str) -> tuple[TreeEntry, ...]:
    """Return the entries below the folder ``prefix`` ('' for all), with paths relative to it."""
    if not prefix:
        return tuple(entries)
    start = f"{prefix}/"
    return tuple(
        TreeEntry(entry.path[len(start) :], entry.mode, entry.size, entry.oid)
        for entry in entries
        if entry.path.startswith(start)
    )


def odd_name(path: str) -> str | None:
    """Return why a relative path is not a valid file name on every system, or None if it is."""
    if len(path.encode("utf-8", "surrogateescape")) > MAX_PATH_LENGTH:
        return f"the path is longer than {MAX_PATH_LENGTH} bytes"
    if any("\ud800" <= character <= "\udfff" for character in path):
        return "the name is not UTF-8"
    if not _fits_ustar(path):
        return "the name, or the folders before it, are too long for an archive that every client can read"
    segments = path.split("/")
    if len(segments) > MAX_PATH_DEPTH:
        return f"the path is more than {MAX_PATH_DEPTH} folders deep"
    for segment in segments:
        problem = _odd_segment(segment)
        if problem is not None:
            return problem
    return None


def unusual_name(path: str) -> str | None:
    """Return what is unusual about a name that ``odd_name`` has nothing against, or None.

    Such a file is carried: clients install it, and only people who look for it are misled.
    """
    space = next((one for one in path if one.isspace() and one != " "), None)
    if space is not None:
        name = unicodedata.name(space, "a blank").lower()
        return f"a space in it is no plain one but U+{ord(space):04X}, {name}"
    if unicodedata.normalize("NFC", path) != path:
        return "it is not in Unicode normal form C, so that another spelling of it looks the same"
    return None


def _fits_ustar(path: str) -> bool:
    """Tell whether a POSIX ustar header can hold a path: 100 bytes, or 155 for folders and 100 for the rest."""
    if len(path.encode()) <= _USTAR_NAME:
        return True
    folders, _, name = path.rpartition("/")
    while folders and len(folders.encode()) > _USTAR_PREFIX:
        folders, _, last = folders.rpartition("/")
        name = f"{last}/{name}"
    return bool(folders) and len(name.encode()) <= _USTAR_NAME


def _odd_segment(segment: str) -> str | None:
    if not segment:
        return "the path has an empty part"
    if segment in {".", ".."}:
        return "the path climbs out of its folder"
    if segment.lower() in {".git", "git~1"}:
        return "the name belongs to git itself"
    if hidden := first_hidden(segment):
        return f"the name has control or invisible characters, such as U+{ord(hidden):04X}"
    if not _FORBIDDEN_CHARACTERS.isdisjoint(segment):
        return "the name has a character that is not allowed on every system"
    if segment.endswith(".") or segment.strip() != segment:
        return "the name begins with a space, or ends with a space or a dot"
    # Windows ignores spaces before the extension.
    if segment.split(".")[0].rstrip(" ").lower() in _WINDOWS_DEVICES:
        return "the name is a reserved device on Windows"
    return None


def collisions(paths: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of ``paths`` that some file system would treat as the same name.

    Compares files and their folders, ignoring case and Unicode normal form. A path that is listed twice, or is both a
    file and a folder, collides with itself.
    """
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    pairs: set[tuple[str, str]] = set()
    for path in sorted(paths):
        segments = path.split("/")
        for depth in range(1, len(segments)):
            folder = "/".join(segments[:depth])
            first = folders.setdefault(_folded(folder), folder)
            if first != folder:
                pairs.add((first, folder))
        key = _folded(path)
        if key in files:
            pairs.add((files[key], path))
        files.setdefault(key, path)
    pairs.update((folders[key], files[key]) for key in files.keys() & folders.keys())
    return tuple(sorted(pairs))


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
