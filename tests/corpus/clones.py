"""Read the newest commit of a bare clone from git's objects: no work tree, no hook, no filter, no link followed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from submissions.source.local import own_git_directory
from submissions.source.tree_entries import TreeEntry, odd_name
from submissions.source.wanted import parse_tree

# Of one file; a sample with a larger one says nothing about engines.
MOST_BYTES = 4 * 1024 * 1024
# No configuration but that of the repository is read, and nothing is fetched that is missing.
_ENVIRONMENT = {
    "PATH": os.defpath,
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
}


@dataclass(frozen=True)
class Clone:
    """One commit: its id, the list of its plain files, and the git directory that holds their content."""

    git_dir: Path
    commit: str
    entries: tuple[TreeEntry, ...]

    def read(self, entries: Iterable[TreeEntry]) -> dict[str, bytes]:
        """Return the files by their paths, without those that are absent from the clone or too large."""
        entries = list(entries)
        asked = "".join(f"{entry.oid}\n" for entry in entries)
        answer = _git(self.git_dir, "cat-file", "--batch", stdin=asked.encode("ascii"))
        files: dict[str, bytes] = {}
        position = 0
        for entry in entries:
            end = answer.index(b"\n", position)
            words = answer[position:end].split()
            position = end + 1
            if words[-1] == b"missing":
                continue
            size = int(words[2])
            if size <= MOST_BYTES:
                files[entry.path] = answer[position : position + size]
            position += size + 1
        return files


def find_clone(clones: Path, repository: str) -> Path | None:
    """Return the git directory of ``owner/name`` below ``clones``, or ``None``.

    Looked for as ``owner+name/repo``, ``owner/name`` and ``owner/name.git``. One with links or alternates is none.
    """
    for name in (f"{repository.replace('/', '+')}/repo", repository, f"{repository}.git"):
        folder = clones / name
        if folder.is_dir() and (git_dir := own_git_directory(folder)) is not None:
            return git_dir
    return None


def open_clone(git_dir: Path) -> Clone:
    """Return the newest commit of a clone, without links, submodules and names that cannot be files everywhere."""
    commit = _git(git_dir, "rev-parse", "--verify", "HEAD^{commit}").decode("ascii").strip()
    entries = parse_tree(_git(git_dir, "ls-tree", "-r", "-z", "--full-tree", commit), "")
    usable = (entry for entry in entries if entry.is_regular and odd_name(entry.path) is None)
    return Clone(git_dir, commit, tuple(usable))


def _git(git_dir: Path, *words: str, stdin: bytes = b"") -> bytes:
    command = ["git", "-c", "safe.directory=*", f"--git-dir={git_dir}", *words]
    return subprocess.run(command, input=stdin, capture_output=True, check=True, env=_ENVIRONMENT, cwd="/").stdout
