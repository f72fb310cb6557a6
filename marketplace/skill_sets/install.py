"""The lines with which each client installs a whole collection."""

from __future__ import annotations

import shlex
from typing import Final

from marketplace.addresses import archive_href, collection_href, plugin_list_name
from marketplace.artifacts.git_names import is_meant_for_git
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
            "key": "claude",
            "label": "Claude Code",
            "command": _claude(found, base),
            "note": "Pinned by commits; the list follows the set."
            " What has a file that git itself reads, such as .gitattributes, is not in it.",
        },
        {
            "key": "git",
            "label": "git",
            "command": f"git clone {shlex.quote(f'{base}/git/-/{found.collection.slug}.git')}",
            "note": "The whole set as one repository, which Claude Code, Codex and Cursor read as a list of plugins.",
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


def _claude(found: SkillSet, base: str) -> str:
    listed = f"{base}{collection_href(found.collection.slug)}/marketplace.json"
    name = plugin_list_name(base, found.collection.slug)
    by_git = [
        one for one in found.installed if not any(is_meant_for_git(file["path"]) for file in one.version.manifest)
    ]
    installs = [f"claude plugin install {one.skill.slug}@{name}" for one in by_git]
    return "\n".join([f"claude plugin marketplace add {shlex.quote(listed)}", *installs])


def _is_in_git(one: Member) -> bool:
    return not any(is_meant_for_git(file["path"]) for file in one.version.manifest)


def _pins(members: tuple[Member, ...]) -> str:
    return (
        " What the set pins is pinned for it too: updates pass it over." if any(one.pinned for one in members) else ""
    )


def _curl(members: tuple[Member, ...], base: str) -> str:
    archives = [(one.skill.slug, archive_href(one.skill.slug, one.version.version, "zip")) for one in members]
    fetched = [f"-o {slug}.zip {shlex.quote(base + path)}" for slug, path in archives]
    sums = [f"'{one.version.zip_sha256}  {one.skill.slug}.zip'" for one in members]
    return " \\\n".join(["curl -fsSL", *fetched]) + "\n" + " \\\n".join(["printf '%s\\n'", *sums]) + " | sha256sum -c"
