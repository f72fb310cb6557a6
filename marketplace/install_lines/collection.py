"""The lines with which each client installs a whole collection."""

from __future__ import annotations

from marketplace.addresses import (
    archive_href,
    catalogue_name,
    collection_href,
    plugin_list_name,
    shared_repository_url,
)
from marketplace.install_lines.clients import (
    APM_NOTE,
    Archive,
    InstallLine,
    clawhub_registry,
    with_apm,
    with_claude,
    with_clawhub,
    with_codex,
    with_curl,
    with_git,
    with_skills,
)
from marketplace.skill_sets.reading import Member, SkillSet
from marketplace.skills.git_versions import is_fit_for_git, sharing
from marketplace.skills.handles import short_handle


def lines_of_collection(found: SkillSet, base: str) -> list[InstallLine]:
    """Return what installs a collection from the registry with the base URL ``base``, for each client.

    There is none where the collection has nothing that installs without a question.
    """
    members, slug = found.installed, found.collection.slug
    if not members:
        return []
    by_git = [
        one.skill.slug for one in sharing(members, lambda one: one.version, lambda one: is_fit_for_git(one.version))
    ]
    lines = [
        InstallLine(
            "skills",
            with_skills(base + collection_href(slug), "--skill", "*"),
            "One line for the whole set. It compares digests; run it again for what is added later.",
        )
    ]
    if by_git:
        listed = f"{base}{collection_href(slug)}/marketplace.json"
        lines += [
            InstallLine(
                "claude",
                with_claude(listed, plugin_list_name(base, slug), by_git),
                "Pinned by commits; the list follows the set." + _left_out(members, by_git),
            ),
            InstallLine(
                "codex",
                with_codex(shared_repository_url(base, slug), catalogue_name(slug), by_git),
                "codex plugin marketplace upgrade follows the set." + _left_out(members, by_git),
            ),
        ]
    lines += [
        InstallLine(
            "clawhub",
            "\n".join([f"export {clawhub_registry(base)}", *map(_clawhub, members)]),
            "This client takes one skill at a time." + _pins(members),
        ),
        InstallLine(
            "apm",
            with_apm(base, [_package(one) for one in members]),
            f"What the set does not pin, apm update takes to later versions. {APM_NOTE}",
        ),
    ]
    if by_git:
        note = "The whole set as one repository, which Claude Code, Codex and Cursor read as a list of plugins."
        lines.append(InstallLine("git", with_git(shared_repository_url(base, slug)), note + _left_out(members, by_git)))
    archives = [
        Archive(
            base + archive_href(one.skill.slug, one.version.version, "zip"),
            f"{one.skill.slug}.zip",
            one.version.zip_sha256,
        )
        for one in members
    ]
    lines.append(InstallLine("curl", with_curl(archives), "Says OK only for the archives that were checked."))
    return lines


def _clawhub(one: Member) -> str:
    if not one.pinned:
        return with_clawhub(one.skill.slug)
    return f"{with_clawhub(one.skill.slug, one.version.version)} && npx clawhub pin {one.skill.slug}"


def _package(one: Member) -> str:
    version = one.version.version if one.pinned else f">={one.version.version}"
    return f"{short_handle(one.skill.publisher_handle)}/{one.skill.slug}#{version}"


def _pins(members: tuple[Member, ...]) -> str:
    return (
        " What the set pins is pinned for it too: updates pass it over." if any(one.pinned for one in members) else ""
    )


def _left_out(members: tuple[Member, ...], by_git: list[str]) -> str:
    missing = [one.skill.slug for one in members if one.skill.slug not in by_git]
    return f" Git would not give {', '.join(missing)} as checked, so the other clients do." if missing else ""
