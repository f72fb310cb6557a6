"""Ask for the web page of a repository whose owner is claimed: it tells of a move that git does not tell of.

GitLab hands out a repository that was moved under its former path as well, without a redirect, so that its new owner's
code would be found under the name of the former one. The page of the former path does redirect.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urljoin, urlsplit

from marketplace.ownership.claims import ClaimRefused
from marketplace.skills.publishers import normalised_repository, publisher_of
from submissions.source.fetching import source_policy
from submissions.source.urls import SourcePolicy
from submissions.watching.fetch_address import AddressLimits, ask_once
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible

# Its host redirects git as it does pages.
_GITHUB: Final = "github.com"
_LIMITS: Final = AddressLimits(seconds=20)
# To the same repository: to its name in other letters, or to its default branch.
_MOST_REDIRECTS: Final = 3


async def refuse_moved(env: WorkerEnv, repo_url: str) -> None:
    """Raise ``ClaimRefused`` where the page of a repository, by its normalised address, redirects to another place.

    A host that answers that it has no such page shows none, and is no reason to refuse; one that does not answer is.
    """
    policy = source_policy(env)
    asked = page = _as_fetched(repo_url, policy)
    if urlsplit(page).scheme != "https" or urlsplit(page).hostname == _GITHUB:
        return
    for _hop in range(_MOST_REDIRECTS + 1):
        end, text = await ask_once(page, policy=policy, limits=_LIMITS)
        if end in ("fetched", "refused"):
            return
        if end != "redirect":
            raise ClaimRefused(
                f"Whether {repo_url} was moved could not be looked up, because {visible(text, 200)}. Nothing was "
                "changed: check again later."
            )
        page = _joined(page, text)
        if not _is_of(page, asked):
            raise ClaimRefused(
                f"The page of {repo_url} redirects elsewhere, as that of a repository that was moved does, or one that "
                "is shown after a sign-in only. So nothing in it proves whose it is. Name a repository whose page is "
                "public by its present address, or ask the operators of this registry."
            )
    raise ClaimRefused(f"The page of {repo_url} redirects too often, so nothing in it proves whose it is.")


def _as_fetched(repo_url: str, policy: SourcePolicy) -> str:
    """Return the address from which the operators have a repository read, which may be that of a mirror."""
    for prefix, target in policy.rewrites:
        if repo_url.startswith(prefix):
            return target + repo_url.removeprefix(prefix)
    return repo_url


def _joined(page: str, location: str) -> str:
    try:
        return urljoin(page, location)
    except ValueError:
        return ""


def _is_of(page: str, repo_url: str) -> bool:
    """Return whether a page is that of a repository, or one below it such as that of its default branch."""
    try:
        parts, wanted = urlsplit(page), normalised_repository(repo_url)
        found = normalised_repository(parts._replace(query="", fragment="").geturl())
        same_host = publisher_of(found).identity == publisher_of(wanted).identity
    except ValueError:
        return False
    # A path with dots in it may leave the folder again.
    steps = parts.path.lower().replace("%2e", ".").split("/")
    below = found == wanted or found.startswith(f"{wanted}/")
    return parts.scheme == "https" and same_host and below and ".." not in steps
