"""The lines with which each client installs one version of a skill."""

from __future__ import annotations

from marketplace.addresses import (
    archive_href,
    catalogue_name,
    plugin_list_name,
    repository_url,
    skill_href,
    version_href,
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
from marketplace.judgement import Judgement, judge, verdict_of
from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.git_versions import has_tag
from marketplace.skills.handles import short_handle
from marketplace.skills.resource_uris import uri_of_skill
from vskill.environments import WorkerEnv


def lines_of_skill(env: WorkerEnv, skill: SkillEntry, version: SkillVersion, base: str) -> list[InstallLine]:
    """Return what installs this version from the registry with the base URL ``base``, for each client that can.

    What takes no number, because it always gives the latest version, is among them for the latest alone.
    """
    number, slug = version.version, skill.slug
    installs = f"Version {number}"
    followed, tagged = bool(skill.latest_version), has_tag(env, skill, version)
    lines = [
        InstallLine(
            "skills",
            with_skills(base + version_href(slug, number)),
            "Compares the digest. npx skills update leaves it on this version.",
            installs,
            with_skills(base + skill_href(slug)) if followed else "",
        )
    ]
    if tagged:
        lines += _by_lists(skill, number, base, installs)
    lines.append(
        InstallLine(
            "clawhub",
            f"{clawhub_registry(base)} {with_clawhub(slug, number)}",
            "Keep CLAWHUB_REGISTRY set, for example in your shell's profile: without it, clawhub update asks clawhub.ai"
            " where it can reach that.",
            installs,
        )
    )
    # It warns of nothing, so that it is not offered what has findings.
    if version.yanked_at is None and judge(verdict_of(version), version.flag_reason) is not Judgement.SUSPICIOUS:
        lines.append(_apm(skill, number, base, installs))
    if tagged:
        repository = repository_url(base, skill.publisher_handle, slug)
        lines.append(InstallLine("git", with_git(repository, number), "", installs, with_git(repository)))
    archive = Archive(base + archive_href(slug, number, "zip"), f"{slug}.zip", version.zip_sha256)
    lines.append(InstallLine("curl", with_curl([archive]), "Says OK only for the archive that was checked.", installs))
    uri = uri_of_skill(slug, version.skill_md)
    if uri and number == skill.latest_version:
        note = (
            f"The address for a host with the skills extension of MCP, such as fastmcp. The skill is {uri} there."
            " Claude Code and Codex do not have the extension."
        )
        lines.append(InstallLine("mcp", f"{base}/mcp", note, "Always the latest version"))
    return lines


def _by_lists(skill: SkillEntry, number: str, base: str, installs: str) -> list[InstallLine]:
    slug = skill.slug
    repository = repository_url(base, skill.publisher_handle, slug)
    listed, named = "marketplace.json", plugin_list_name(base, slug)
    catalogue = catalogue_name(slug)
    return [
        InstallLine(
            "claude",
            with_claude(f"{base}{version_href(slug, number)}/{listed}", named, [slug]),
            "Pinned by its commit. Updates leave it on this version.",
            installs,
            with_claude(base + skill_href(slug, listed), named, [slug]),
        ),
        InstallLine(
            "codex",
            with_codex(repository, catalogue, [slug], number),
            "Updates leave it on this version. Before you add another one:"
            f" codex plugin marketplace remove {catalogue}",
            installs,
            with_codex(repository, catalogue, [slug]),
        ),
    ]


def _apm(skill: SkillEntry, number: str, base: str, installs: str) -> InstallLine:
    package = f"{short_handle(skill.publisher_handle)}/{skill.slug}"
    return InstallLine(
        "apm",
        with_apm(base, [f"{package}#{number}"]),
        APM_NOTE,
        installs,
        with_apm(base, [f"{package}#>={skill.latest_version}"]) if skill.latest_version else "",
    )
