"""The lines of every client with words in the places of names, for agents that read llms.txt."""

from __future__ import annotations

from typing import Final

from marketplace.install_lines.clients import LABELS
from marketplace.install_lines.collection import skills_of_set
from marketplace.install_lines.commands import commands

# In the commands, names are lower case as those of skills are.
_PLACES: Final = {"the-slug": "SLUG", "the-owner": "OWNER", "the-version": "VERSION", "the-set": "COLLECTION"}


def guide(base: str, *, bearing: bool) -> list[dict[str, str]]:
    """Return what installs from the registry with the base URL ``base``: ``client``, ``command``, and ``of`` what.

    SLUG, OWNER, VERSION and COLLECTION stand for names that the API gives, and where it is ``bearing``, TOKEN for a
    token.
    """
    of_skill = commands(base, "the-owner", "the-slug", "the-version", bearing=bearing)
    lines = [*((key, command, "") for key, command in of_skill.items())]
    lines.append(("skills", skills_of_set(base, "the-set", bearing=bearing), "a whole collection"))
    return [{"client": LABELS[key], "command": _told(command), "of": of} for key, command, of in lines]


def _told(command: str) -> str:
    for name, place in _PLACES.items():
        command = command.replace(name, place)
    return command.replace("\n", " && ")
