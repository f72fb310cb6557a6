"""Follow symbolic links inside one skill, on the list of its files alone: nothing on a disk is ever followed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Final

from submissions.source.tree_entries import TreeEntry

# As many as Linux follows.
_MAX_HOPS: Final = 40
# Folders on the way of one link, so that a thousand hostile links cost no more than a thousand honest ones.
_MAX_STEPS: Final = 400
# A link holds a path, and no system takes a longer one.
MAX_LINK_BYTES: Final = 4096


class Astray(StrEnum):
    """Why a link is not replaced by what it leads to."""

    OUTSIDE = "it leads out of the folder of the skill"
    BROKEN = "it leads to nothing"
    AROUND = "it leads to a folder that holds it"
    FOLDER = "it leads to a folder"


class Links:
    """The links among the ``entries`` of a skill, whose paths are relative to its folder ``root`` in the repository.

    ``targets`` maps the git id of a link to what it holds.
    """

    def __init__(self, root: str, entries: Mapping[str, TreeEntry], targets: Mapping[str, bytes]) -> None:
        """Keep the list of files."""
        self._root = root.split("/") if root else []
        self._entries = entries
        self._targets = targets

    def files_of(self, path: str) -> dict[str, TreeEntry] | Astray:
        """Return the files that stand for the link at ``path``, by their paths; or why there are none.

        A link to a file gives that file under the path of the link, one to a folder all plain files in it.
        """
        reached = self._reach(path)
        if isinstance(reached, Astray):
            return reached
        found = self._entries.get(reached)
        if found is not None:
            return {path: found} if found.is_regular else Astray.BROKEN
        if not reached or f"{path}/".startswith(f"{reached}/"):
            return Astray.AROUND
        inside = {f"{path}{rest}": entry for rest, entry in self._below(reached) if entry.is_regular}
        return inside or Astray.BROKEN

    def file_of(self, entry: TreeEntry) -> TreeEntry | Astray:
        """Return the file that an entry is, or that it leads to as a link, under the path of the entry; or why not."""
        if not entry.is_link:
            return entry
        found = self.files_of(entry.path)
        if isinstance(found, Astray):
            return found
        return replace(found[entry.path], path=entry.path) if entry.path in found else Astray.FOLDER

    def _below(self, folder: str) -> Iterator[tuple[str, TreeEntry]]:
        for path, entry in self._entries.items():
            if path.startswith(f"{folder}/"):
                yield path[len(folder) :], entry

    def _reach(self, path: str) -> str | Astray:
        """Return the path in the skill where a link ends, after every link on its way."""
        waiting = [*self._root, *path.split("/")]
        walked: list[str] = []
        hops = steps = 0
        while waiting:
            part, steps = waiting.pop(0), steps + 1
            if steps > _MAX_STEPS:
                return Astray.BROKEN
            if part in ("", "."):
                continue
            if part == "..":
                if not walked:
                    return Astray.OUTSIDE
                walked.pop()
                continue
            walked.append(part)
            link = self._link_at(walked)
            if link is None:
                continue
            hops += 1
            target = self._targets.get(link.oid, b"").decode("utf-8", "surrogateescape")
            if not target or "\0" in target or hops > _MAX_HOPS:
                return Astray.BROKEN
            if target.startswith("/"):
                return Astray.OUTSIDE
            walked.pop()
            waiting = [*target.split("/"), *waiting]
        if walked[: len(self._root)] != self._root:
            return Astray.OUTSIDE
        return "/".join(walked[len(self._root) :])

    def _link_at(self, walked: list[str]) -> TreeEntry | None:
        if walked[: len(self._root)] != self._root:
            return None
        entry = self._entries.get("/".join(walked[len(self._root) :]))
        return entry if entry is not None and entry.is_link else None
