"""Prove that a commit belongs to a repository: that it is on one of its branches or tags.

Hosts also serve commits of forks and pull requests by their ids, which anybody can make.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from submissions.sandbox.child_processes import ChildOutcome
from submissions.source.errors import CommitNotOnBranch, RepositoryTooLarge
from submissions.source.git_errors import fetch_error
from submissions.source.git_process import FetchLimits, GitSandbox, open_sandbox
from submissions.source.origin import Origin

# Commits behind each tip. With a filter that the host knows, a commit is some 250 bytes.
DEPTH: Final = 5000
# A ref is some 60 bytes, so this is some 70,000 of them.
_REF_BYTES: Final = 4 * 1024 * 1024
_TIPS: Final = "refs/vskill/tips/"
_ADVICE: Final = "Submit the address of a branch or tag instead."


async def ref_of(sandbox: GitSandbox, origin: Origin, sha: str, limits: FetchLimits) -> str:
    """Return a branch or tag of ``origin`` that ``sha`` is on, as ``refs/heads/...`` or ``refs/tags/...``.

    It is ``HEAD`` for the newest commit of the default branch.

    The tips are compared first, which needs one list of refs. Otherwise at most ``DEPTH`` commits behind the default
    branch, and then behind every branch and tag, are fetched into a repository of their own below the folder of
    ``sandbox``: without files where the host can leave them out, and within ``limits`` in any case. Raises
    CommitNotOnBranch where the commit is on none of them, or where that cannot be told within the limits.
    """
    tips, default = await _tips(sandbox, origin, limits)
    found = [ref for ref, tip in tips.items() if tip == sha]
    if found:
        # The newest commit of the default branch is what is fetched without a ref.
        return "HEAD" if default in found else min(found)
    if default in tips and await on_refs(sandbox, origin, sha, [default], limits, "default"):
        return default
    name = await on_refs(sandbox, origin, sha, ["refs/heads/*", "refs/tags/*"], limits, "all")
    if not name:
        raise CommitNotOnBranch(
            f"The commit {sha[:12]} is on no branch or tag of this repository, as far as {DEPTH:,} commits behind "
            f"each. It may be from a fork or a pull request, so it is not a version of this repository. {_ADVICE}"
        )
    return name


async def _tips(sandbox: GitSandbox, origin: Origin, limits: FetchLimits) -> tuple[dict[str, str], str]:
    """Return the commit of each branch and tag, and the name of the default branch ('' where there is none)."""
    result = await sandbox.run(
        "ls-remote",
        "--quiet",
        "--symref",
        origin.upload_pack,
        "--",
        origin.url,
        "HEAD",
        "refs/heads/*",
        "refs/tags/*",
        limits=limits.for_child(_REF_BYTES),
        origin=origin,
    )
    if result.outcome is ChildOutcome.FLOODED:
        raise CommitNotOnBranch(f"The repository has too many branches and tags to look for a commit. {_ADVICE}")
    if not result.ok:
        raise fetch_error(result, origin, limits, pinned=False)
    tips: dict[str, str] = {}
    default = ""
    for line in result.stdout.decode("utf-8", "replace").split("\n"):
        left, _, ref = line.partition("\t")
        if left.startswith("ref: ") and ref == "HEAD":
            # A name that is no UTF-8 cannot be asked for as it was decoded.
            default = "" if "\ufffd" in left else left.removeprefix("ref: ")
        elif ref.startswith(("refs/heads/", "refs/tags/")):
            # An annotated tag has two lines; the second, with ^{}, is its commit.
            tips[ref.removesuffix("^{}")] = left
    return tips, default


async def on_refs(
    sandbox: GitSandbox, origin: Origin, sha: str, refs: Sequence[str], limits: FetchLimits, folder: str
) -> str:
    """Fetch the history of ``refs`` from ``origin``, and return one of them that ``sha`` is on, '' for none.

    ``sandbox``, ``limits`` and what is fetched are those of ``ref_of``; ``folder`` is a name of its own for it. Raises
    CommitNotOnBranch where the history is too large to be told, and what a failed fetch raises.
    """
    directory = sandbox.directory / f"history-{folder}"
    directory.mkdir(exist_ok=True)
    history = await open_sandbox(directory, configuration=origin.configuration)
    result = await history.run(
        "fetch",
        "--quiet",
        # A host that knows no filters sends the files as well, and the limits end that.
        "--filter=tree:0",
        f"--depth={DEPTH}",
        "--no-tags",
        "--no-recurse-submodules",
        "--no-auto-maintenance",
        "--no-write-fetch-head",
        origin.upload_pack,
        "--",
        origin.url,
        *(f"+{ref}:{_TIPS}{ref.removeprefix('refs/')}" for ref in refs),
        limits=limits.for_child(),
        origin=origin,
    )
    if not result.ok:
        error = fetch_error(result, origin, limits, pinned=False)
        if isinstance(error, RepositoryTooLarge):
            raise CommitNotOnBranch(
                f"Whether the commit {sha[:12]} is on a branch or tag cannot be told: the history is too large. "
                f"{_ADVICE}"
            )
        raise error
    # A commit that is not in what was fetched is an error for git, and on no ref for us.
    listed = await history.run(
        "for-each-ref", "--count=1", f"--contains={sha}", "--format=%(refname)", _TIPS, limits=limits.for_child()
    )
    name = listed.stdout.decode("utf-8", "replace").strip() if listed.ok else ""
    return f"refs/{name.removeprefix(_TIPS)}" if name else ""
