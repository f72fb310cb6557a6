"""The lines with which each client installs a whole collection."""

from __future__ import annotations

import shlex
from typing import Final

from marketplace.addresses import archive_href, collection_href
from marketplace.skill_sets.reading import Member, SkillSet

NOTHING_INSTALLED: Final = "This collection offers nothing at the moment that installs without a question."


def install_lines(found: SkillSet, base: str) -> list[dict[str, str]]:
    """Return what installs a collection from the registry with the base URL ``base``, for each client.

    Each has ``key``, ``label``, ``command`` and ``note``. There is none where the collection has nothing that installs
    without a question.
    """
    members = found.installed
    if not members:
        return []
    return [
        {
            "key": "skills",
            "label": "skills",
            "command": f"npx skills add {shlex.quote(base + collection_href(found.collection.slug))} --skill '*'",
            "note": "One line for the whole set. It compares digests; run it again for what is added later.",
        },
        {
            "key": "clawhub",
            "label": "ClawHub",
            "command": "\n".join([f"export CLAWHUB_REGISTRY={shlex.quote(base)}", *map(_clawhub, members)]),
            "note": "This client takes one skill at a time." + _pins(members),
        },
        {
            "key": "curl",
            "label": "curl",
            "command": _curl(members, base),
            "note": "Says OK only for the archives that were checked.",
        },
    ]


def _clawhub(one: Member) -> str:
    if not one.pinned:
        return f"npx clawhub install {one.skill.slug}"
    return f"npx clawhub install {one.skill.slug} --version {one.version.version} && npx clawhub pin {one.skill.slug}"


def _pins(members: tuple[Member, ...]) -> str:
    return (
        " What the set pins is pinned for it too: updates pass it over." if any(one.pinned for one in members) else ""
    )


def _curl(members: tuple[Member, ...], base: str) -> str:
    archives = [(one.skill.slug, archive_href(one.skill.slug, one.version.version, "zip")) for one in members]
    fetched = [f"-o {slug}.zip {shlex.quote(base + path)}" for slug, path in archives]
    sums = [f"'{one.version.zip_sha256}  {one.skill.slug}.zip'" for one in members]
    return " \\\n".join(["curl -fsSL", *fetched]) + "\n" + " \\\n".join(["printf '%s\\n'", *sums]) + " | sha256sum -c"
