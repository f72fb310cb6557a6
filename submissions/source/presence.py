"""Look up whether a fetched commit has certain folders of skills, without listing the whole commit."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from submissions.source.errors import FetchFailed
from submissions.source.git import Snapshot
from submissions.source.git_errors import first_useful_line

_SPELLINGS: Final = ("SKILL.md", "skill.md", "Skill.md")
# Of paths in one command line, which an operating system limits.
_AT_ONCE: Final = 200


async def skill_folders_in(snapshot: Snapshot, folders: Collection[str]) -> frozenset[str]:
    """Return those of ``folders`` ('' for the root) that hold a SKILL.md in the commit of ``snapshot``.

    Raises FetchFailed where git cannot read the trees of the commit.
    """
    wanted = {f"{folder}/{name}".lstrip("/"): folder for folder in folders for name in _SPELLINGS}
    paths = [path for path in wanted if "\0" not in path]
    there: set[str] = set()
    for start in range(0, len(paths), _AT_ONCE):
        some = paths[start : start + _AT_ONCE]
        result = await snapshot.sandbox.read(
            "--literal-pathspecs",
            "ls-tree",
            "--name-only",
            "--full-tree",
            "-z",
            snapshot.commit_sha,
            "--",
            *some,
            limits=snapshot.limits.for_child(
                sum(len(path.encode(errors="surrogateescape")) + 1 for path in some) + 4096
            ),
        )
        if not result.ok:
            raise FetchFailed(f"The folders of the commit could not be read: {first_useful_line(result.stderr)}.")
        there |= {path.decode("utf-8", "surrogateescape") for path in result.stdout.split(b"\0")}
    return frozenset(folder for path, folder in wanted.items() if path in there)
