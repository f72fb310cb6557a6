"""The lines with which each client installs one skill."""

from __future__ import annotations

import shlex

from marketplace.addresses import archive_href, catalogue_name, plugin_list_name, repository_url, skill_href
from marketplace.artifacts.git_names import is_meant_for_git
from marketplace.pages.skill import Found


def install_lines(found: Found, base: str) -> list[dict[str, str]]:
    """Return the command with which each client installs this version from the registry with the base URL ``base``."""
    slug, version = found.skill.slug, found.version
    url = base + archive_href(slug, version.version, "zip")
    archive = f"{slug}.zip"
    latest = "" if found.exact else " Today that is this version."
    lines = [
        {
            "key": "clawhub",
            "label": "ClawHub",
            "command": f"CLAWHUB_REGISTRY={shlex.quote(base)} npx clawhub install {slug} --version {version.version}",
            "note": "Installs exactly this version. Keep CLAWHUB_REGISTRY set, for example in your shell's profile: "
            "without it, clawhub update asks clawhub.ai where it can reach that.",
        },
        {
            "key": "skills",
            "label": "skills",
            "command": f"npx skills add {shlex.quote(base + skill_href(slug))}",
            "note": f"Installs the latest version and compares its digest.{latest}",
        },
    ]
    if not any(is_meant_for_git(file["path"]) for file in version.manifest):
        lines += _by_git(found, base, latest)
    lines.append(
        {
            "key": "curl",
            "label": "curl",
            "command": f"curl -fsSLo {archive} {shlex.quote(url)}\n"
            f"echo '{version.zip_sha256}  {archive}' | sha256sum -c",
            "note": "Says OK only for the archive that was checked.",
        }
    )
    return lines


def _by_git(found: Found, base: str, latest: str) -> list[dict[str, str]]:
    slug = found.skill.slug
    repository = shlex.quote(repository_url(base, found.skill.publisher_handle, slug))
    return [
        {
            "key": "claude",
            "label": "Claude Code",
            "command": f"claude plugin marketplace add {shlex.quote(f'{base}{skill_href(slug)}/marketplace.json')}\n"
            f"claude plugin install {slug}@{plugin_list_name(base, slug)}",
            "note": f"Installs the latest version, pinned by its commit.{latest}",
        },
        {
            "key": "codex",
            "label": "Codex",
            "command": f"codex plugin marketplace add {repository}\ncodex plugin add {slug}@{catalogue_name(slug)}",
            "note": f"Installs the latest version; codex plugin marketplace upgrade fetches later ones.{latest}",
        },
        {
            "key": "git",
            "label": "git",
            "command": f"git clone {repository}",
            "note": f"The latest version is the branch, and versions are tags.{latest}",
        },
    ]
