"""Ask a repository where its branches and tags are, without a fetch, and whether one went on from a commit."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from submissions.sandbox.child_processes import ChildOutcome
from submissions.source.contact import contacts, nothing_there
from submissions.source.errors import (
    RepositoryMoved,
    RepositoryNotFound,
    RepositoryRefused,
    RepositoryTooLarge,
    SourceError,
)
from submissions.source.git_errors import fetch_error, fetch_timed_out
from submissions.source.git_process import FetchLimits, GitSandbox
from submissions.source.origin import Origin
from submissions.source.reachable import on_refs
from submissions.source.urls import RepositoryURL, SourcePolicy
from vskill.hidden_characters import visible
from vskill.processes.machine_faults import MachineFault, fault_of_child

# A ref is some 60 bytes, so this is some 17,000 of them.
_REF_BYTES: Final = 1024 * 1024
_SHA: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_OF_KIND: Final = {"refs/heads": ("--heads",), "refs/tags": ("--tags",)}
Found = TypeVar("Found")


@dataclass(frozen=True)
class RemoteRefs:
    """The refs that were asked for by their full names, or ``HEAD``, each with its commit.

    ``default`` is the full name of the default branch, '' where that was not asked for or the host does not say it.
    """

    commits: dict[str, str]
    default: str = ""


async def remote_refs(
    repository: RepositoryURL, *, directory: Path, policy: SourcePolicy, limits: FetchLimits, pattern: str
) -> RemoteRefs:
    """Return the refs of ``repository`` that fit ``pattern``, by one `git ls-remote`.

    ``pattern`` is ``HEAD``, or begins with ``refs/heads/`` or ``refs/tags/``; the host is then asked for refs of that
    kind alone, and not for those of its pull requests. ``directory`` is an empty folder; ``policy`` says what may be
    contacted, within ``limits``. An annotated tag has the commit that it is on. Raises RepositoryTooLarge where there
    are more refs than can be read, and the other errors of ``fetch_snapshot``.
    """

    async def ask(sandbox: GitSandbox, origin: Origin) -> RemoteRefs:
        result = await sandbox.run(
            "ls-remote",
            "--quiet",
            *_OF_KIND.get("/".join(pattern.split("/")[:2]), ("--symref",)),
            origin.upload_pack,
            "--",
            origin.url,
            pattern,
            limits=limits.for_child(_REF_BYTES),
            origin=origin,
        )
        if result.outcome is ChildOutcome.FLOODED:
            raise RepositoryTooLarge("The repository has more branches and tags than are read. Nothing was taken.")
        if not result.ok:
            if (fault := fault_of_child(result.stderr)) is not None:
                raise MachineFault(f"git could not work on this server: {visible(fault, 200)}")
            raise fetch_error(result, origin, limits, pinned=False)
        return _read(result.stdout)

    return await _first_that_answers(repository, directory, policy, limits, ask)


async def went_on_from(
    repository: RepositoryURL, ref: str, commit: str, *, directory: Path, policy: SourcePolicy, limits: FetchLimits
) -> bool:
    """Tell whether ``commit`` is in the history of ``ref``, as far as ``reachable.DEPTH`` commits behind its newest.

    ``directory``, ``policy`` and ``limits`` are those of ``remote_refs``, whose errors it raises; CommitNotOnBranch
    where the history is too large to be told.
    """

    async def ask(sandbox: GitSandbox, origin: Origin) -> bool:
        return bool(await on_refs(sandbox, origin, commit, [ref], limits, "seen"))

    return await _first_that_answers(repository, directory, policy, limits, ask)


async def _first_that_answers(
    repository: RepositoryURL,
    directory: Path,
    policy: SourcePolicy,
    limits: FetchLimits,
    ask: Callable[[GitSandbox, Origin], Awaitable[Found]],
) -> Found:
    failure: SourceError | None = None
    try:
        async with asyncio.timeout(limits.seconds):
            async for sandbox, origin in contacts(repository, directory, policy, limits):
                try:
                    return await ask(sandbox, origin)
                except (RepositoryNotFound, RepositoryMoved) as error:
                    # What a host forbids may be there, whatever it says of the other spelling.
                    failure = error if failure is None or isinstance(error, RepositoryRefused) else failure
    except TimeoutError:
        raise fetch_timed_out(repository.host, limits) from None
    raise failure or nothing_there()


def _read(printed: bytes) -> RemoteRefs:
    commits: dict[str, str] = {}
    default = ""
    for line in printed.decode("utf-8", "replace").split("\n"):
        left, _, ref = line.partition("\t")
        # A name that is no UTF-8 cannot be asked for as it was decoded.
        if "\ufffd" in line:
            continue
        if left.startswith("ref: ") and ref == "HEAD":
            default = left.removeprefix("ref: ")
        elif _SHA.fullmatch(left):
            # An annotated tag has two lines; the second, with ^{}, is its commit.
            commits[ref.removesuffix("^{}")] = left
    return RemoteRefs(commits, default)
