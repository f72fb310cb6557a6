"""Make bare git repositories for tests, ordinary and hostile ones, without a working tree."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

SKILL_MD = "---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n\nSay hello.\n"
_WHO = b"Test <test@example.org> 1700000000 +0000"
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "Test",
    "GIT_AUTHOR_EMAIL": "test@example.org",
    "GIT_AUTHOR_DATE": "1700000000 +0000",
    "GIT_COMMITTER_NAME": "Test",
    "GIT_COMMITTER_EMAIL": "test@example.org",
    "GIT_COMMITTER_DATE": "1700000000 +0000",
}


def skill_md(name: str = "hello-skill", description: str = "Says hello to whoever asks.") -> str:
    """Return a valid SKILL.md."""
    return SKILL_MD.format(name=name, description=description)


def make_repository(
    path: Path,
    files: Mapping[str, bytes | str] | None = None,
    *,
    symlinks: Mapping[str, str] | None = None,
    executables: Mapping[str, bytes | str] | None = None,
    submodules: Mapping[str, str] | None = None,
    branch: str = "main",
) -> Path:
    """Make a bare repository at ``path`` with one commit of the files given, and return ``path``.

    ``symlinks`` maps a path to its target, ``submodules`` a path to a commit id. Without anything to commit the
    repository stays empty.
    """
    git(path.parent, "init", "--quiet", "--bare", f"--initial-branch={branch}", str(path))
    if files or symlinks or executables or submodules:
        commit(path, files, symlinks=symlinks, executables=executables, submodules=submodules, branch=branch)
    return path


def commit(
    repository: Path,
    files: Mapping[str, bytes | str] | None = None,
    *,
    symlinks: Mapping[str, str] | None = None,
    executables: Mapping[str, bytes | str] | None = None,
    submodules: Mapping[str, str] | None = None,
    branch: str = "main",
    message: str = "Add files",
) -> str:
    """Replace the whole content of ``branch`` by the files given and return the id of the new commit."""
    lines = [b"commit refs/heads/%s" % branch.encode(), b"committer " + _WHO, *_data(message)]
    if git(repository, "for-each-ref", f"refs/heads/{branch}").strip():
        lines.append(b"from refs/heads/%s^0" % branch.encode())
    lines.append(b"deleteall")
    for mode, entries in ((b"100644", files), (b"100755", executables), (b"120000", symlinks)):
        for path, content in (entries or {}).items():
            lines += [b"M %s inline %s" % (mode, _quoted(path)), *_data(content)]
    for path, sha in (submodules or {}).items():
        lines.append(b"M 160000 %s %s" % (sha.encode(), _quoted(path)))
    git(repository, "fast-import", "--quiet", "--force", stdin=b"\n".join(lines) + b"\n")
    return git(repository, "rev-parse", f"refs/heads/{branch}").decode().strip()


def commit_raw_tree(repository: Path, entries: Mapping[bytes, bytes | str], *, branch: str = "main") -> str:
    """Commit a tree whose names are written as given, also those that git's own commands refuse (``..``, ``a/b``).

    A value is the bytes of a file, or the hexadecimal id of a tree made before. Returns the id of the commit.
    """
    tree = write_raw_tree(repository, entries)
    sha = git(repository, "commit-tree", tree, "-m", "Add files").decode().strip()
    git(repository, "update-ref", f"refs/heads/{branch}", sha)
    return sha


def write_raw_tree(repository: Path, entries: Mapping[bytes, bytes | str]) -> str:
    """Write one tree object as ``commit_raw_tree`` does and return its id."""
    records = b""
    for name, content in entries.items():
        if isinstance(content, str):
            mode, oid = b"40000", content
        else:
            mode, oid = b"100644", git(repository, "hash-object", "-w", "--stdin", stdin=content).decode().strip()
        records += mode + b" " + name + b"\0" + bytes.fromhex(oid)
    return git(repository, "hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=records).decode().strip()


def git(repository: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run git in ``repository`` without any configuration of this machine and return what it printed."""
    return subprocess.run(
        ["git", *arguments], cwd=repository, input=stdin, env=_ENVIRONMENT, check=True, capture_output=True
    ).stdout


def _data(content: bytes | str) -> list[bytes]:
    raw = content.encode() if isinstance(content, str) else content
    return [b"data %d" % len(raw), raw]


def _quoted(path: str) -> bytes:
    raw = path.encode("utf-8", "surrogateescape")
    return b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
