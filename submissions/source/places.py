"""Where in a repository an address leads: to which branch, tag or commit, to which folder, and to which skill there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from submissions.source.errors import InvalidRepositoryURL

# Of a ref and a folder together. A folder may be 16 deep, and few branches have more than four parts.
MAX_PARTS: Final = 24
_LONGEST_REF: Final = 250
_SHA: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.IGNORECASE)
# What `git check-ref-format` refuses inside a name, and a leading hyphen, which could pass for an option.
_NO_REF: Final = re.compile(r"[\x00- \x7f~^:?*\[\\]|\.\.|@\{|//|^[-/]|[/.]$|(^|/)\.|\.lock(/|$)|^@$")


@dataclass(frozen=True)
class Place:
    """A ref of a repository, a folder in it, and the name of a skill below that folder.

    An empty ``ref`` is the default branch. It is a commit id in lower case, a full name such as ``refs/heads/main``, or
    a short name, which may be that of a branch or a tag. An empty ``path`` is the root, an empty ``skill`` any skill.
    """

    ref: str = ""
    path: str = ""
    skill: str = ""

    @property
    def is_commit(self) -> bool:
        """Tell whether the ref is the id of a commit."""
        return is_commit_id(self.ref)


def is_commit_id(ref: str) -> bool:
    """Tell whether git takes a ref for the full id of a commit."""
    return _SHA.fullmatch(ref) is not None


def is_possible_ref(name: str) -> bool:
    """Tell whether git accepts ``name`` for a branch or tag."""
    return bool(name) and len(name.encode(errors="replace")) <= _LONGEST_REF and not _NO_REF.search(name)


def places_at(parts: Sequence[str], *, prefix: str = "") -> tuple[Place, ...]:
    """Return each way to divide the end of a page's address into a ref and a folder, the longest ref first.

    Only the repository can tell where a name such as ``feature/x`` ends, so all are kept until it is asked; a commit id
    ends where it ends. ``prefix`` is ``refs/heads/`` or ``refs/tags/`` where the address says which kind the ref is.
    Raises InvalidRepositoryURL where no ref can begin the address.
    """
    # %2F is a slash as well.
    parts = "/".join(parts).split("/")
    if len(parts) > MAX_PARTS:
        raise InvalidRepositoryURL(f"That address has more than {MAX_PARTS} parts after its repository.")
    if is_commit_id(parts[0]) and not prefix:
        return (Place(parts[0].lower(), folder(parts[1:])),)
    names = (("/".join(parts[:end]), folder(parts[end:])) for end in range(len(parts), 0, -1))
    places = tuple(Place(f"{prefix}{name}", path) for name, path in names if is_possible_ref(name))
    if not places:
        raise InvalidRepositoryURL(
            "That address names a branch or commit that git would not accept. "
            "Use one such as https://github.com/owner/repository/tree/main/skills/one."
        )
    return places


def folder(parts: Sequence[str]) -> str:
    """Return the folder that the parts of a path name; that of its SKILL.md where they name that file."""
    if parts and parts[-1].lower() == "skill.md":
        parts = parts[:-1]
    return "/".join(parts)
