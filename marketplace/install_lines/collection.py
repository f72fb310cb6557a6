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
    clawhub_token,
    git_token,
    with_apm,
    with_claude,
    with_clawhub,
    with_codex,
    with_curl,
    with_git,
    with_skills,
)
from marketplace.install_lines.skill import needs_token
from marketplace.skill_sets.reading import Member, SkillSet
from marketplace.skills.git_versions import is_fit_for_git, sharing
from marketplace.skills.handles import short_handle
from vskill.environments import WorkerEnv


def set_needs_token(env: WorkerEnv, found: SkillSet) -> bool:
    """Return whether clients get all of a collection only with a token."""
    return any(needs_token(env, one.skill) for one in found.installed)


def skills_of_set(base: str, slug: str, *, bearing: bool) -> str:
    """Return the command of ``skills`` for a collection; ``bearing`` is whether that needs a token."""
    address = shared_repository_url(base, slug) if bearing else base + collection_href(slug)
    return _token_for_git(base, bearing=bearing) + with_skills(address, "--skill", "*")


def lines_of_collection(env: WorkerEnv, found: SkillSet, base: str) -> list[InstallLine]:
    """Return what installs a collection from the registry with the base URL ``base``, for each client.

    There is none where the collection has nothing that installs without a question.
    """
    members, slug = found.installed, found.collection.slug
    if not members:
        return []
    bearing = set_needs_token(env, found)
    by_git = [
        one.skill.slug for one in sharing(members, lambda one: one.version, lambda one: is_fit_for_git(one.version))
    ]
    lines = []
    if by_git or not bearing:
        note = "One line for the whole set. It compares digests; run it again for what is added later."
        if bearing:
            note = "One line for the whole set; run it again for what is added later." + _left_out(members, by_git)
        lines.append(InstallLine("skills", skills_of_set(base, slug, bearing=bearing), note))
    if by_git:
        lines += _by_lists(slug, base, by_git, bearing=bearing, missing=_left_out(members, by_git))
    registry = clawhub_token(base) if bearing else f"export {clawhub_registry(base)}"
    one_by_one = "\n".join([registry, *map(_clawhub, members)])
    lines.append(InstallLine("clawhub", one_by_one, "This client takes one skill at a time." + _pins(members)))
    if packages := with_apm(base, [_package(one) for one in members], bearing=bearing):
        note = f"What the set does not pin, apm update takes to later versions. {APM_NOTE}"
        lines.append(InstallLine("apm", packages, note))
    if by_git:
        note = "The whole set as one repository, which Claude Code, Codex and Cursor read as a list of plugins."
        lines.append(
            InstallLine(
                "git",
                _token_for_git(base, bearing=bearing) + with_git(shared_repository_url(base, slug)),
                note + _left_out(members, by_git),
            )
        )
    archives = [
        Archive(
            base + archive_href(one.skill.slug, one.version.version, "zip"),
            f"{one.skill.slug}.zip",
            one.version.zip_sha256,
        )
        for one in members
    ]
    command = with_curl(archives, bearing=bearing)
    lines.append(InstallLine("curl", command, "Says OK only for the archives that were checked."))
    return lines


def _by_lists(slug: str, base: str, by_git: list[str], *, bearing: bool, missing: str) -> list[InstallLine]:
    repository, catalogue = shared_repository_url(base, slug), catalogue_name(slug)
    known = _token_for_git(base, bearing=bearing)
    codex = known + with_codex(repository, catalogue, by_git)
    if bearing:
        claude = known + with_claude(repository, catalogue, by_git)
        note = "The list follows the set."
    else:
        listed = f"{base}{collection_href(slug)}/marketplace.json"
        claude = with_claude(listed, plugin_list_name(base, slug), by_git)
        note = "Pinned by commits; the list follows the set."
    return [
        InstallLine("claude", claude, note + missing),
        InstallLine("codex", codex, "codex plugin marketplace upgrade follows the set." + missing),
    ]


def _token_for_git(base: str, *, bearing: bool) -> str:
    return f"{git_token(base)}\n" if bearing else ""


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
