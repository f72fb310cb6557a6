"""The command with which each client installs a skill, made of names alone; ``curl`` takes a digest as well."""

from __future__ import annotations

from marketplace.addresses import catalogue_name, plugin_list_name, repository_url, skill_href, version_href
from marketplace.install_lines.clients import (
    clawhub_registry,
    clawhub_token,
    git_token,
    with_apm,
    with_claude,
    with_clawhub,
    with_codex,
    with_git,
    with_skills,
)
from marketplace.skills.handles import short_handle


def commands(base: str, handle: str, slug: str, version: str, *, bearing: bool) -> dict[str, str]:
    """Return the command of each client for a skill of the publisher ``handle``, in the registry at ``base``.

    For an empty ``version`` it is always the latest; ``apm`` wants one, or a range of them. ``bearing`` is whether
    that needs a token. ``skills`` sends none, nor does Claude Code where it reads a list by its address, so both take
    the repository then, which git reads for them.
    """
    repository, catalogue = repository_url(base, handle, slug), catalogue_name(slug)
    apm = with_apm(base, [f"{short_handle(handle)}/{slug}#{version}"], bearing=bearing) if version else ""
    of_apm = {"apm": apm} if apm else {}
    if bearing:
        known = f"{git_token(base)}\n"
        at = f"{repository}#{version}" if version else repository
        return {
            "skills": known + with_skills(at),
            "claude": known + with_claude(at, catalogue, [slug]),
            "codex": known + with_codex(repository, catalogue, [slug], version),
            "clawhub": f"{clawhub_token(base)}\n{with_clawhub(slug, version)}",
            **of_apm,
            "git": known + with_git(repository, version),
        }
    page = base + (version_href(slug, version) if version else skill_href(slug))
    return {
        "skills": with_skills(page),
        "claude": with_claude(f"{page}/marketplace.json", plugin_list_name(base, slug), [slug]),
        "codex": with_codex(repository, catalogue, [slug], version),
        "clawhub": f"{clawhub_registry(base)} {with_clawhub(slug, version)}",
        **of_apm,
        "git": with_git(repository, version),
    }
