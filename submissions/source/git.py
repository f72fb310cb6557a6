"""Fetch one commit of an untrusted repository, without a working tree and within hard limits."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from submissions.source.cat_file import cat_file
from submissions.source.contact import contacts, nothing_there
from submissions.source.errors import (
    CommitNotAvailable,
    RepositoryEmpty,
    RepositoryMoved,
    RepositoryNotFound,
    RepositoryRefused,
    SourceError,
)
from submissions.source.git_errors import fetch_error, fetch_timed_out
from submissions.source.git_process import FetchLimits, GitSandbox
from submissions.source.origin import Origin
from submissions.source.places import Place
from submissions.source.reachable import ref_of
from submissions.source.refs import choose_place
from submissions.source.tree_entries import TreeEntry
from submissions.source.urls import RepositoryURL, SourcePolicy
from submissions.source.wanted import (
    NARROW,
    NarrowFetchRefused,
    Wanted,
    bring,
    list_present,
    list_wanted,
    refuses_narrow_fetch,
)
from vskill.hidden_characters import visible
from vskill.processes.machine_faults import MachineFault, fault_of_child

_HEAD = "refs/vskill/head"
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True)
class Snapshot:
    """One fetched commit: its list of files, and the bare repository that holds the blobs that were asked for.

    The repository is in the directory that was passed to ``fetch_snapshot``. The snapshot can be read until the
    caller removes that directory. ``ref`` is the branch or tag that the commit is on: ``HEAD`` for the default branch,
    otherwise its full name; '' where that was not looked for. ``place`` is where the address led to, with that ref.
    """

    commit_sha: str
    git_dir: Path
    entries: tuple[TreeEntry, ...]
    sandbox: GitSandbox
    limits: FetchLimits
    origin: Origin
    ref: str = ""
    place: Place = field(default_factory=Place)

    async def read(self, batch: Sequence[TreeEntry]) -> list[tuple[TreeEntry, bytes]]:
        """Return entries with their bytes, see ``FileSource.read``; one process of git reads them."""
        return await cat_file(self.sandbox, self.limits, batch)

    async def with_more(self, more: Sequence[TreeEntry]) -> Snapshot:
        """Return the snapshot with the content of more entries, see ``FileSource.with_more``; they are fetched.

        Nobody else may fetch into the same repository meanwhile.
        """
        chosen = [*(entry for entry in self.entries if entry.size is not None), *more]
        try:
            async with asyncio.timeout(self.limits.seconds):
                entries = await bring(self.sandbox, self.origin, self.entries, chosen, self.limits)
        except TimeoutError:
            raise fetch_timed_out(self.origin.host, self.limits) from None
        return replace(self, entries=entries)


async def fetch_snapshot(
    repository: RepositoryURL,
    *,
    directory: Path,
    policy: SourcePolicy,
    limits: FetchLimits | None = None,
    commit_sha: str | None = None,
    find_ref: bool = False,
    wanted: Wanted | None = None,
) -> Snapshot:
    """Fetch the newest commit of ``repository``, or exactly ``commit_sha``, into the empty folder ``directory``.

    The snapshot lists what is below the folder of ``wanted``, or else below that of the address, and holds the files
    that it chooses; where the host can leave out others, they are not transferred. By default it is the whole commit.

    Without ``commit_sha``, the first place in the address whose ref the repository has decides, then the default
    branch. A commit id in the address has to be on a branch or tag; so has ``commit_sha`` with ``find_ref``, and
    otherwise the caller has made sure of it.
    ``policy`` says which hosts and folders may be contacted; ``limits`` is the budget of the fetch. No working tree,
    hook, submodule, filter or foreign git configuration is used. The caller removes ``directory``. Raises a SourceError
    whose ``transient`` says whether a later attempt can succeed.
    """
    limits = limits or FetchLimits()
    if commit_sha is not None and not _SHA.fullmatch(commit_sha):
        raise CommitNotAvailable("That is not a full commit id; 40 hexadecimal digits are needed.")
    asked = wanted or Wanted()

    async def take(folder: Path, *, narrow: bool) -> Snapshot:
        sandbox, origin, place = await _fetch(repository, folder, policy, limits, commit_sha, narrow=narrow)
        sha = await _resolve_commit(sandbox, limits, commit_sha)
        ref = "" if commit_sha is not None else place.ref or "HEAD"
        if (find_ref and commit_sha is not None) or place.is_commit:
            ref = await ref_of(sandbox, origin, sha, limits)
        listed, chosen = await list_wanted(sandbox, sha, asked.or_below(place.path), limits)
        entries = await bring(sandbox, origin, listed, chosen, limits)
        return Snapshot(sha, sandbox.git_dir, entries, sandbox, limits, origin, ref, place)

    try:
        async with asyncio.timeout(limits.seconds):
            try:
                return await take(directory, narrow=not asked.is_everything)
            except NarrowFetchRefused:
                whole = directory / "whole"
                whole.mkdir()
                return await take(whole, narrow=False)
    except TimeoutError:
        raise fetch_timed_out(repository.host, limits) from None


async def complete(snapshot: Snapshot, wanted: Wanted, *, may_fetch: bool) -> Snapshot | None:
    """Return the snapshot with the files that ``wanted`` asks for, or ``None`` where one of them is missing.

    With ``may_fetch`` what is missing is fetched, and nobody else may fetch into the same repository meanwhile. Raises
    a SourceError as ``fetch_snapshot`` does.
    """
    limits = snapshot.limits
    try:
        async with asyncio.timeout(limits.seconds):
            if may_fetch:
                listed, chosen = await list_wanted(snapshot.sandbox, snapshot.commit_sha, wanted, limits)
                entries = await bring(snapshot.sandbox, snapshot.origin, listed, chosen, limits)
            else:
                there = await list_present(snapshot.sandbox, snapshot.commit_sha, wanted, limits)
                if there is None:
                    return None
                entries = there
    except TimeoutError:
        raise fetch_timed_out(snapshot.origin.host, limits) from None
    return replace(snapshot, entries=entries)


async def _fetch(
    repository: RepositoryURL,
    directory: Path,
    policy: SourcePolicy,
    limits: FetchLimits,
    commit_sha: str | None,
    *,
    narrow: bool,
) -> tuple[GitSandbox, Origin, Place]:
    """Fetch the commit, with all its files or with ``narrow`` the trees alone, and return where it came from."""
    failure: SourceError | None = None
    async for sandbox, origin in contacts(repository, directory, policy, limits):
        try:
            place = (
                Place() if commit_sha is not None else await choose_place(sandbox, origin, repository.places, limits)
            )
            commit = commit_sha or place.ref or "HEAD"
            await _fetch_commit(sandbox, origin, commit, limits, pinned=commit_sha is not None, narrow=narrow)
        except (RepositoryNotFound, RepositoryMoved) as error:
            # Some hosts accept only addresses that end in `.git`, others only those that do not. The canonical address
            # has no `.git`, so both spellings are tried.
            # What a host forbids may be there, whatever it says of the other spelling.
            failure = error if failure is None or isinstance(error, RepositoryRefused) else failure
        else:
            return sandbox, origin, place
    raise failure or nothing_there()


async def _fetch_commit(
    sandbox: GitSandbox, origin: Origin, commit: str, limits: FetchLimits, *, pinned: bool, narrow: bool
) -> None:
    result = await sandbox.run(
        "fetch",
        "--quiet",
        *([NARROW] if narrow else []),
        "--depth=1",
        "--no-tags",
        "--no-recurse-submodules",
        "--no-auto-maintenance",
        "--no-write-fetch-head",
        origin.upload_pack,
        "--",
        origin.url,
        f"+{commit}:{_HEAD}",
        limits=limits.for_child(),
        origin=origin,
    )
    sandbox.forbid_lazy_fetches()
    if result.ok:
        return
    if narrow and refuses_narrow_fetch(result.stderr):
        raise NarrowFetchRefused
    if (fault := fault_of_child(result.stderr)) is not None:
        raise MachineFault(f"git could not work on this server: {visible(fault, 200)}")
    raise fetch_error(result, origin, limits, pinned=pinned)


async def _resolve_commit(sandbox: GitSandbox, limits: FetchLimits, commit_sha: str | None) -> str:
    result = await sandbox.run(
        "rev-parse", "--verify", "--quiet", "--end-of-options", f"{_HEAD}^{{commit}}", limits=limits.for_child()
    )
    sha = result.stdout.decode("ascii", "replace").strip()
    if not result.ok or not _SHA.fullmatch(sha):
        raise RepositoryEmpty("What was asked for is not a commit, so there is nothing to read.")
    if commit_sha is not None and sha != commit_sha:
        raise CommitNotAvailable(f"The host gave another commit than {commit_sha}. Nothing of it was used.")
    return sha
