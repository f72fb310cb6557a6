"""Say what of a commit is asked for, list it from the tree alone, and bring its files if they are not there yet.

A fetch with a filter brings commit and trees, which are small. The files that are chosen from them come in one more
fetch, by their ids; nothing beside them is transferred, and nothing is fetched without having been asked for here.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from submissions.sandbox.child_processes import ChildOutcome
from submissions.source.errors import FetchFailed, RepositoryTooLarge
from submissions.source.git_errors import fetch_error, first_useful_line
from submissions.source.git_process import FetchLimits, GitSandbox
from submissions.source.origin import Origin
from submissions.source.tree_entries import MODE_SUBMODULE, TreeEntry

NARROW = "--filter=blob:none"
_MIB = 1024 * 1024
# The usual line of `ls-tree` has some 110 bytes, so this is more than `FetchLimits.listed_files` of them.
_LISTED_BYTES = 32 * _MIB
_NO_FOLDER = re.compile(rb"not a valid object name|not a tree object", re.IGNORECASE)
_REFUSED = re.compile(rb"\bfilter\b|not our ref|unadvertised object|does not allow request", re.IGNORECASE)


def _everything(entries: Sequence[TreeEntry]) -> Sequence[TreeEntry]:
    return entries


@dataclass(frozen=True)
class Wanted:
    """The files below ``folder`` ('' for all), and a function that chooses those of them whose content is read.

    ``choose`` gets every entry below the folder, with paths from the root of the repository, on another thread. Limits
    of files and bytes count for what it returns.
    """

    folder: str = ""
    choose: Callable[[Sequence[TreeEntry]], Sequence[TreeEntry]] = _everything

    @property
    def is_everything(self) -> bool:
        """Tell whether the whole commit is asked for, so that a filter would only cost a second fetch."""
        return not self.folder and self.choose is _everything

    def or_below(self, folder: str) -> Wanted:
        """Return this, below ``folder`` where it names no folder itself; who wants everything gets everything."""
        return self if self.folder or self.is_everything else replace(self, folder=folder)


class NarrowFetchRefused(FetchFailed):
    """Raised when a host does not give single files; ``fetch_snapshot`` then fetches everything."""

    def __init__(self) -> None:
        """Say what it means where everything was fetched already."""
        super().__init__("The host did not send a file of the repository. Try again later.")


def refuses_narrow_fetch(stderr: bytes) -> bool:
    """Tell whether git says that the host refuses a filter, or objects that are named by their ids."""
    return _REFUSED.search(stderr) is not None


async def list_wanted(
    sandbox: GitSandbox, sha: str, wanted: Wanted, limits: FetchLimits, *, with_sizes: bool = False
) -> tuple[tuple[TreeEntry, ...], tuple[TreeEntry, ...]]:
    """Return every entry below the folder of ``wanted`` in the commit ``sha``, and those of them that are chosen.

    Only trees are read, and no entry has a size, unless ``with_sizes`` asks for the sizes of what is there. ``limits``
    bound both lists. A folder that is not there has no entries.
    """
    where = f"The folder {wanted.folder!a}" if wanted.folder else "The repository"
    too_many = RepositoryTooLarge(
        f"{where} has more than {limits.listed_files:,} files. Submit the folder of one skill, or a smaller repository."
    )
    if not _can_be_a_folder(wanted.folder):
        return (), ()
    result = await sandbox.read(
        "ls-tree",
        "-r",
        "-z",
        "--full-tree",
        *(["--long"] if with_sizes else []),
        f"{sha}:{wanted.folder}",
        # A tree can refer to the same subtree many times, so a few kilobytes can list billions of files.
        limits=limits.for_child(_LISTED_BYTES),
    )
    if result.outcome is ChildOutcome.FLOODED:
        raise too_many
    if not result.ok:
        if wanted.folder and _NO_FOLDER.search(result.stderr):
            return (), ()
        raise FetchFailed(f"The list of files could not be read: {first_useful_line(result.stderr)}.")
    # A line of a plain list has the length of its path and some 53 bytes, so this refuses before anything is parsed.
    if result.stdout.count(b"\0") > limits.listed_files:
        raise too_many
    entries = await asyncio.to_thread(parse_tree, result.stdout, wanted.folder)
    chosen = tuple(await asyncio.to_thread(wanted.choose, entries))
    if len(chosen) > limits.files:
        raise RepositoryTooLarge(
            f"{where} has more than {limits.files:,} files. Submit the folder of one skill, or a smaller repository."
        )
    return entries, chosen


def _can_be_a_folder(folder: str) -> bool:
    """Tell whether git can look ``folder`` up: it takes ``./x`` and ``../x`` after a commit for something else."""
    return "\0" not in folder and all(part not in {"", ".", ".."} for part in folder.split("/")) if folder else True


def parse_tree(listing: bytes, folder: str) -> tuple[TreeEntry, ...]:
    """Return the entries that ``ls-tree -r -z`` printed for ``folder``, with paths from the root of the repository."""
    start = f"{folder}/" if folder else ""
    entries: list[TreeEntry] = []
    for line in listing.split(b"\0")[:-1]:
        description, _, path = line.partition(b"\t")
        # A size is `-` for a submodule and a word for an object that is not there.
        mode, _kind, oid, *size = description.decode("ascii").split()
        known = int(size[0]) if size and size[0].isdigit() else None
        entries.append(TreeEntry(start + path.decode("utf-8", "surrogateescape"), mode, known, oid))
    return tuple(entries)


async def bring(
    sandbox: GitSandbox,
    origin: Origin,
    entries: Sequence[TreeEntry],
    chosen: Sequence[TreeEntry],
    limits: FetchLimits,
) -> tuple[TreeEntry, ...]:
    """Fetch the content of the ``chosen`` ones of ``entries`` where it is missing, and return all with their sizes.

    One process fetches all that is missing from ``origin``, under the guards of the first fetch and within what
    ``limits.pack_bytes`` leaves. Raises NarrowFetchRefused where the host does not give objects by their ids, and
    RepositoryTooLarge where the chosen files are larger than ``limits.tree_bytes`` together.
    """
    oids = await asyncio.to_thread(_oids, chosen)
    sizes = await _sizes(sandbox, oids, limits)
    if missing := [oid for oid in oids if oid not in sizes]:
        await _fetch_objects(sandbox, origin, missing, limits)
        sizes |= await _sizes(sandbox, missing, limits)
        if not sizes.keys() >= set(missing):
            raise NarrowFetchRefused
    return await _within_limits(entries, chosen, sizes, limits)


async def list_present(
    sandbox: GitSandbox, sha: str, wanted: Wanted, limits: FetchLimits
) -> tuple[TreeEntry, ...] | None:
    """Return what ``bring`` returns for what is ``wanted`` of the commit ``sha``, or ``None`` where some is missing.

    Nothing is fetched, and one process of git answers. ``limits`` are those of ``list_wanted`` and ``bring``.
    """
    entries, chosen = await list_wanted(sandbox, sha, wanted, limits, with_sizes=True)
    sizes = {entry.oid: entry.size for entry in chosen if entry.size is not None}
    if any(entry.oid not in sizes for entry in chosen if entry.mode != MODE_SUBMODULE):
        return None
    return await _within_limits(entries, chosen, sizes, limits)


async def _within_limits(
    entries: Sequence[TreeEntry], chosen: Sequence[TreeEntry], sizes: dict[str, int], limits: FetchLimits
) -> tuple[TreeEntry, ...]:
    total, sized = await asyncio.to_thread(_with_sizes, entries, chosen, sizes)
    if total > limits.tree_bytes:
        raise RepositoryTooLarge(
            f"The files that are asked for are more than {limits.tree_bytes // _MIB:,} MiB together. "
            "Submit the folder of one skill, or a smaller repository."
        )
    return sized


def _oids(chosen: Iterable[TreeEntry]) -> list[str]:
    return list(dict.fromkeys(entry.oid for entry in chosen if entry.mode != MODE_SUBMODULE))


def _as_lines(oids: Sequence[str]) -> bytes:
    return ("\n".join(oids) + "\n").encode("ascii")


async def _sizes(sandbox: GitSandbox, oids: Sequence[str], limits: FetchLimits) -> dict[str, int]:
    """Return the size of each object that is in the repository, by its id."""
    if not oids:
        return {}
    result = await sandbox.read(
        "cat-file",
        "--batch-check=%(objectname) %(objectsize)",
        stdin=_as_lines(oids),
        limits=limits.for_child(128 * len(oids) + 4096),
    )
    if not result.ok:
        raise FetchFailed(f"The sizes of files could not be read: {first_useful_line(result.stderr)}.")
    return await asyncio.to_thread(_parse_sizes, result.stdout)


def _parse_sizes(output: bytes) -> dict[str, int]:
    pairs = (line.split(" ") for line in output.decode("ascii").splitlines())
    return {oid: int(size) for oid, size in pairs if size.isdigit()}


async def _fetch_objects(sandbox: GitSandbox, origin: Origin, oids: Sequence[str], limits: FetchLimits) -> None:
    used = await asyncio.to_thread(_pack_bytes, sandbox)
    result = await sandbox.run(
        "-c",
        # What is there already shares no content with what is asked for, so nothing is gained by telling the host.
        "fetch.negotiationAlgorithm=noop",
        "fetch",
        "--quiet",
        NARROW,
        "--no-tags",
        "--no-recurse-submodules",
        "--no-auto-maintenance",
        "--no-write-fetch-head",
        origin.upload_pack,
        "--stdin",
        "--",
        origin.url,
        stdin=_as_lines(oids),
        limits=replace(limits, pack_bytes=max(1, limits.pack_bytes - used)).for_child(),
        origin=origin,
    )
    sandbox.forbid_lazy_fetches()
    if result.ok:
        return
    if refuses_narrow_fetch(result.stderr):
        raise NarrowFetchRefused
    raise fetch_error(result, origin, limits, pinned=False)


def _pack_bytes(sandbox: GitSandbox) -> int:
    return sum(pack.stat().st_size for pack in (sandbox.git_dir / "objects" / "pack").glob("*.pack"))


def _with_sizes(
    entries: Iterable[TreeEntry], chosen: Iterable[TreeEntry], sizes: dict[str, int]
) -> tuple[int, tuple[TreeEntry, ...]]:
    """Return the bytes of the chosen entries together, and all entries with the sizes that are known."""
    total = sum(sizes.get(entry.oid, 0) for entry in chosen)
    return total, tuple(TreeEntry(one.path, one.mode, sizes.get(one.oid), one.oid) for one in entries)
