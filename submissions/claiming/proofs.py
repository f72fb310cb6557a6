"""Look for the proof of a claim: its code in the name of a branch or in a file of the repository.

A repository is read as every other, through ``submissions.source``: redirects are not followed, so that a repository
which was given away proves nothing for its former owner. Its web page is asked as well, since not every host redirects
git.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from marketplace.models import PublisherClaim
from marketplace.ownership.claims import ClaimRefused, Proof
from marketplace.ownership.one_owner import why_not_of_one_owner
from marketplace.skills.publishers import publisher_of
from submissions.claiming.web_page import refuse_moved
from submissions.following.look import refs_of
from submissions.source.blobs import read_blob
from submissions.source.errors import RepositoryEmpty
from submissions.source.fetching import fetch, repository_url, scratch_folder
from submissions.source.tree_entries import TreeEntry
from submissions.source.wanted import Wanted
from vskill.environments import WorkerEnv

FOLDER: Final = ".well-known"
FILE: Final = f"{FOLDER}/vskill-claim"
_MOST_BYTES: Final = 4096


@dataclass(frozen=True)
class Seen:
    """A proof, and where it was seen."""

    proof: Proof
    evidence: str


async def find_code(env: WorkerEnv, claim: PublisherClaim) -> Seen | None:
    """Look for the code of a claim in its repository: a branch of that name, or a line of the file on the default one.

    Returns ``None`` where it is in neither. Raises ClaimRefused where the repository is not the publisher's or was
    moved, and the errors of ``submissions.source``.
    """
    seen = await _seen(env, claim)
    if seen is not None:
        await refuse_moved(env, repository_url(env, claim.repo_url).url)
    return seen


async def _seen(env: WorkerEnv, claim: PublisherClaim) -> Seen | None:
    repository = repository_url(env, claim.repo_url)
    if publisher_of(repository.url).identity != claim.publisher:
        raise ClaimRefused(f"{repository.url} is not a repository of {claim.publisher}. Nothing was looked for.")
    if reason := why_not_of_one_owner(repository.url):
        raise ClaimRefused(f"{reason} Nothing was looked for.")
    # Without the branch or folder that the address may have named.
    plain = repository_url(env, repository.url)
    branch = f"refs/heads/{claim.code}"
    found = await refs_of(env, plain, branch)
    if branch in found.commits:
        return Seen(Proof.BRANCH, f"the branch {claim.code} of {plain.url} at {found.commits[branch][:12]}")
    async with scratch_folder() as scratch:
        try:
            snapshot = await fetch(env, plain, scratch, wanted=Wanted(FOLDER, _the_file))
        except RepositoryEmpty:
            return None
        entry = next(iter(_the_file(snapshot.entries)), None)
        if entry is None or not entry.is_regular or entry.size is None or entry.size > _MOST_BYTES:
            return None
        lines = (await read_blob(snapshot, entry)).decode("utf-8", "replace").split("\n")
    if claim.code in (line.strip() for line in lines):
        return Seen(Proof.FILE, f"{FILE} in {plain.url} at {snapshot.commit_sha[:12]}")
    return None


def _the_file(entries: Sequence[TreeEntry]) -> Sequence[TreeEntry]:
    return [entry for entry in entries if entry.path == FILE and entry.is_regular]
