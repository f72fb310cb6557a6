"""The lines with which each client installs one version of a skill."""

from __future__ import annotations

from marketplace.addresses import archive_href, catalogue_name
from marketplace.install_lines.clients import APM_NOTE, Archive, InstallLine, hosts_of_mcp, with_curl
from marketplace.install_lines.commands import commands
from marketplace.judgement import Judgement, judge, verdict_of
from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.git_versions import has_tag
from marketplace.skills.resource_uris import uri_of_skill
from vskill.accounts.access import is_closed
from vskill.accounts.audiences import PUBLIC
from vskill.environments import WorkerEnv

_BY_GIT = frozenset({"claude", "codex", "git"})


def needs_token(env: WorkerEnv, skill: SkillEntry) -> bool:
    """Return whether clients get a skill only with a token: it is private, or the registry is closed."""
    return skill.audience != PUBLIC or is_closed(env)


def lines_of_skill(env: WorkerEnv, skill: SkillEntry, version: SkillVersion, base: str) -> list[InstallLine]:
    """Return what installs this version from the registry with the base URL ``base``, for each client that can.

    What takes no number, because it always gives the latest version, is among them for the latest alone.
    """
    number, slug, bearing = version.version, skill.slug, needs_token(env, skill)
    installs = f"Version {number}"
    exact = commands(base, skill.publisher_handle, slug, number, bearing=bearing)
    latest = commands(base, skill.publisher_handle, slug, "", bearing=bearing) if skill.latest_version else {}
    if skill.latest_version and "apm" in exact:
        later = commands(base, skill.publisher_handle, slug, f">={skill.latest_version}", bearing=bearing)
        latest["apm"] = later["apm"]
    # An update by it is one to the latest version.
    latest.pop("clawhub", None)
    left_out = set() if has_tag(env, skill, version) else {*_BY_GIT, *(["skills"] if bearing else [])}
    # It warns of nothing, so that it is not offered what has findings.
    suspicious = judge(verdict_of(version), version.flag_reason) is Judgement.SUSPICIOUS
    if version.yanked_at is not None or suspicious:
        left_out.add("apm")
    notes, before = _notes(bearing=bearing), {"codex": f"codex plugin marketplace remove {catalogue_name(slug)}"}
    lines = [
        InstallLine(key, command, notes.get(key, ""), installs, latest.get(key, ""), before.get(key, ""))
        for key, command in exact.items()
        if key not in left_out
    ]
    archive = Archive(base + archive_href(slug, number, "zip"), f"{slug}.zip", version.zip_sha256)
    curl = with_curl([archive], bearing=bearing)
    lines.append(InstallLine("curl", curl, "Says OK only for the archive that was checked.", installs))
    uri = uri_of_skill(slug, version.skill_md)
    if uri and number == skill.latest_version:
        note = f"The address of the registry for hosts of MCP. The skill is {uri} there."
        sent = " The host sends the token as a bearer token." if bearing else ""
        # Both show an agent no warning, and have their lists of plugins, which do.
        hosts = () if suspicious else hosts_of_mcp(base, bearing=bearing)
        lines.append(InstallLine("mcp", f"{base}/mcp", note + sent, "Always the latest version", hosts=hosts))
    return lines


def _notes(*, bearing: bool) -> dict[str, str]:
    stays = "Updates leave it on this version."
    return {
        "skills": stays if bearing else "Compares the digest. npx skills update leaves it on this version.",
        "claude": stays if bearing else f"Pinned by its commit. {stays}",
        "codex": stays,
        "clawhub": "Keep CLAWHUB_REGISTRY set, for example in your shell's profile: without it, clawhub update asks"
        " clawhub.ai where it can reach that.",
        "apm": APM_NOTE,
    }
