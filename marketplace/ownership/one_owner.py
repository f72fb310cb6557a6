"""Whether the address of a repository says who owns it: some stand for a service of the host, or let others write."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit

# First segments of paths under which hosts such as Gerrit, cgit, SourceForge and Bitbucket serve everybody's
# repositories. At GitHub they can be names of accounts, and nothing else.
_SHARED: Final = frozenset({"-", "a", "cgit", "git", "gitweb", "p", "pub", "r", "scm", "snippets"})
_GITHUB: Final = frozenset({"github.com", "www.github.com"})
# A wiki may be open to people who cannot push to its repository.
_WIKI: Final = ".wiki"
_ASK: Final = "Name a repository HOST/OWNER/NAME, or ask the operators of this registry, who can grant the claim."


def why_not_of_one_owner(repo_url: str) -> str:
    """Return why nobody proves to be a publisher by the repository at a normalised address, or '' where one does."""
    parts = urlsplit(repo_url)
    if parts.scheme == "file":
        return ""
    path = [unquote_to_bytes(one).decode(errors="replace").lower() for one in parts.path.split("/") if one]
    if path and path[-1].removesuffix(".git").endswith(_WIKI):
        return f"That is a wiki, in which others than its owner may write. {_ASK}"
    if len(path) != 2:
        return (
            "A claim is proven by a repository that lies directly below its owner: whoever may push to one of a "
            f"subgroup, or below a folder of its host, need not be the owner. {_ASK}"
        )
    if path[0] in _SHARED and parts.hostname not in _GITHUB:
        return f"/{path[0]}/ is a folder in which hosts keep the repositories of everybody, so it is no owner. {_ASK}"
    return ""
