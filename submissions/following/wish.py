"""What an operator asks to be followed: an address, and a branch or a pattern of tags, checked without the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from submissions.following.store import CannotFollow
from submissions.source.fetching import repository_url
from submissions.source.places import is_possible_ref
from vskill.environments import WorkerEnv

_HEADS: Final = "refs/heads/"
_LONGEST_PATTERN: Final = 100


@dataclass(frozen=True)
class Wish:
    """The normalised address of a repository, and what is followed of it, as in ``Followed``."""

    repo_url: str
    branch: str = ""
    tags: str = ""


def read_wish(env: WorkerEnv, address: str, *, branch: str = "", tags: str = "") -> Wish:
    """Return what is to be followed; raise InvalidRepositoryURL for the ``address``, and CannotFollow for the rest.

    ``branch`` is a name, '' for the default branch; ``tags`` is a pattern with ``*``, ``?`` and ``[...]``, in the place
    of a branch.
    """
    repository = repository_url(env, address)
    if repository.places:
        raise CannotFollow(
            f"A whole repository is followed, not a page of it. Name {repository.url}, and its branch or tags apart."
        )
    name = branch.strip().removeprefix(_HEADS)
    pattern = tags.strip()
    if name and pattern:
        raise CannotFollow("A branch is followed or tags are, not both. Nothing was changed.")
    if name and not is_possible_ref(name):
        raise CannotFollow(f"{name[:80]!r} cannot be the name of a branch. Nothing was changed.")
    if len(pattern) > _LONGEST_PATTERN or not pattern.isprintable() or " " in pattern:
        raise CannotFollow(
            f"A pattern of tags, such as v*, has at most {_LONGEST_PATTERN} characters and no spaces. Nothing was done."
        )
    return Wish(repository.url, f"{_HEADS}{name}" if name else "", pattern)
