"""Ask a repository which of the branches and tags that an address may mean it has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from submissions.source.errors import RepositoryEmpty
from submissions.source.git_errors import fetch_error
from submissions.source.git_process import FetchLimits, GitSandbox
from submissions.source.origin import Origin
from submissions.source.places import Place
from vskill.hidden_characters import visible
from vskill.processes.machine_faults import MachineFault, fault_of_child

_HEADS: Final = "refs/heads/"
_TAGS: Final = "refs/tags/"
_PART_OF_ID: Final = re.compile(r"[0-9a-f]{7,63}", re.IGNORECASE)


async def choose_place(sandbox: GitSandbox, origin: Origin, places: Sequence[Place], limits: FetchLimits) -> Place:
    """Return the first of ``places`` whose ref ``origin`` has, with the ref's full name, empty for the default branch.

    A branch comes before a tag of the same name, as on the pages of hosts. Without places it is the default branch, and
    a commit id is taken as it is. Raises RepositoryEmpty where the repository has none of the refs, and what a failed
    fetch within ``limits`` raises.
    """
    if not places:
        return Place()
    if not places[0].ref or places[0].is_commit:
        return places[0]
    # A pattern also matches the end of a longer name, so each line is compared as a whole.
    names = [(place, name) for place in places for name in _full_names(place.ref)]
    result = await sandbox.run(
        "ls-remote",
        "--quiet",
        "--symref",
        origin.upload_pack,
        "--",
        origin.url,
        "HEAD",
        *(name for _, name in names),
        limits=limits.for_child(),
        origin=origin,
    )
    if not result.ok:
        if (fault := fault_of_child(result.stderr)) is not None:
            raise MachineFault(f"git could not work on this server: {visible(fault, 200)}")
        raise fetch_error(result, origin, limits, pinned=False)
    lines = [line.partition("\t") for line in result.stdout.decode("utf-8", "replace").split("\n")]
    there = {name for _, _, name in lines}
    default = {left.removeprefix("ref: ") for left, _, name in lines if left.startswith("ref: ") and name == "HEAD"}
    for place, name in names:
        if name in there:
            # By whatever name it was asked for, the default branch is the default branch.
            return replace(place, ref="" if name in default else name)
        if not place.ref or place.is_commit:
            return place
    raise RepositoryEmpty(_none_of(places))


def _full_names(ref: str) -> tuple[str, ...]:
    return (ref,) if ref.startswith((_HEADS, _TAGS)) else (f"{_HEADS}{ref}", f"{_TAGS}{ref}")


def _none_of(places: Sequence[Place]) -> str:
    shown = [visible(place.ref.removeprefix(_HEADS).removeprefix(_TAGS), 80) for place in reversed(places)]
    names = " or ".join(repr(name) for name in (shown if len(shown) <= 2 else [shown[0], shown[-1]]))
    between = ", or anything between them" if len(shown) > 2 else ""
    advice = "Look up its branches and tags, and write one as #BRANCH after the address of the repository."
    if _PART_OF_ID.fullmatch(shown[0]):
        advice = "A commit is written with all 40 digits of its id."
    return f"The repository has no such branch or tag: none is called {names}{between}. {advice}"
