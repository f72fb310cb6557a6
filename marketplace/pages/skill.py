"""What the pages of one skill show: its version, text, versions and install commands."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from django.utils.safestring import SafeString

from marketplace.addresses import archive_href, publisher_href, ref_words, repository_of, skill_href
from marketplace.capabilities import Capabilities, left_unread
from marketplace.catalog import fetchable_versions, find_skill_sync, find_version_sync
from marketplace.judgement import verdict_of
from marketplace.models import SkillEntry, SkillVersion
from marketplace.pages.like_links import like_links
from marketplace.pages.list_capabilities import capabilities_of
from marketplace.pages.markdown import render_markdown
from marketplace.pages.skill_source import also_at, folder_of, source_gone
from marketplace.pages.source_links import source_href
from marketplace.pages.text_links import TextLinks
from marketplace.pages.wording import verdict_words, version_words
from marketplace.skills.capability_names import asked_names
from marketplace.skills.newest_scan import NewestScan, newest_scan
from marketplace.skills.publishers import is_uploaded
from marketplace.skills.visibility import light_versions
from marketplace.skills.withdrawal import nothing_offered, why_withdrawn
from vskill.environments import WorkerEnv

MOST_VERSIONS: Final = 100


@dataclass(frozen=True)
class Found:
    """A visible skill, and the version of it that is shown."""

    skill: SkillEntry
    version: SkillVersion

    @property
    def exact(self) -> str:
        """Return the query string that pins a link to this version; empty for the latest."""
        latest = self.version.version == self.skill.latest_version
        return "" if latest else f"?{urlencode({'version': self.version.version})}"


def find(env: WorkerEnv, slug: str, version: str = "") -> Found | None:
    """Return the skill that has or had ``slug`` with a version (by default the latest), or ``None``.

    A skill whose versions are all yanked is shown with the newest one and its warning.
    """
    skill = find_skill_sync(env, slug)
    if skill is None:
        return None
    found = find_version_sync(env, skill, version)
    if found is None and not version:
        versions = fetchable_versions(SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=skill))
        found = versions.select_related("skill").order_by("-ordinal").first()
    return Found(skill, found) if found is not None else None


def why_absent(env: WorkerEnv, slug: str, version: str = "") -> str:
    """Return why the skill that has or had ``slug``, or its ``version``, is withheld; empty where it is not there."""
    skill = find_skill_sync(env, slug, hidden=True)
    if skill is None:
        return ""
    return why_withdrawn(env, skill.identity, version) if version else nothing_offered(env, skill)


def head(found: Found) -> dict[str, Any]:
    """Return the context of the head that all pages of a skill share."""
    skill, version = found.skill, found.version
    source = repository_of(skill.repo_url, version.repo_url)
    web = urlsplit(source).scheme in {"http", "https"}
    newest = newest_scan(version)
    return {
        "skill": {
            "name": skill.display_name or skill.name,
            "slug": skill.slug,
            "href": skill_href(skill.slug) + found.exact,
            "owner": skill.publisher_handle,
            "publisher_href": publisher_href(skill.publisher_handle),
            "description": version.description,
            "repo_url": source,
            # Only http and https become links; file: and other schemes stay text.
            "repo_href": source if web else "",
            "now_from": skill.repo_url if source != skill.repo_url else "",
            "uploaded": is_uploaded(source),
            "path": folder_of(found.skill, found.version),
            "also_at": () if found.exact else also_at(found.skill),
            "source_gone": source_gone(found.skill),
            "downloads": skill.downloads,
            **like_links(skill),
        },
        "version": {
            "version": version.version,
            "verdict": verdict_of(version),
            "verdict_summary": version.verdict_summary,
            "capabilities": asked_for(found),
            "size": version.size,
            "published_at": version.created_at,
            "license": version.license,
            "compatibility": version.compatibility,
            "commit_sha": version.commit_sha,
            "commit_href": source_href(source, version.commit_sha, f"{folder_of(found.skill, found.version)}/"),
            "ref": ref_words(version.source_ref),
            "content_hash": version.content_hash,
            "zip_sha256": version.zip_sha256,
            "zip_size": version.zip_size,
            "zip_href": download_path(found, "zip"),
            "tar_href": download_path(found, "tar.gz"),
            "tar_size": version.tar_size,
            "query": found.exact,
            "warning": _warning(found),
            "flag_reason": version.flag_reason,
        },
        "verdict": version_words(verdict_of(version), newest.findings, summary=version.verdict_summary),
        "scanned_again": _scanned_again(newest, verdict_of(version)),
        "scan_href": skill_href(skill.slug, "scan") + found.exact,
        # Answered by the app above this one.
        "scan_again_href": skill_href(skill.slug, "scan-again"),
        "files_href": skill_href(skill.slug, "files/"),
    }


def _scanned_again(newest: NewestScan, published: str) -> dict[str, Any] | None:
    """Return when and how a version was scanned after its publication; ``differs`` from the verdict of that."""
    if not newest.again:
        return None
    label = verdict_words(newest.verdict).label
    by = newest.named_engines
    return {"at": newest.scanned_at, "label": label, "by": by, "differs": newest.verdict != published}


def asked_for(found: Found) -> Capabilities:
    """Return what a version asks for, by ``capabilities_of_version``; else what its skill was recorded to ask for."""
    of_version = capabilities_of_version(found.version)
    return of_version if of_version.known else capabilities_of(found.skill, unread=True)


def capabilities_of_version(version: SkillVersion) -> Capabilities:
    """Return what a version asks for: what its contract says it does, and what engines called it besides.

    Of the latest version the entry of its skill says the same, and so do lists, filters and counts.
    """
    return Capabilities(asked_names(version.capabilities, version.contract), unread=left_unread(version))


def readme(found: Found) -> SafeString:
    """Return SKILL.md as safe HTML."""
    return rendered(found, "SKILL.md", found.version.skill_md)


def rendered(found: Found, path: str, text: str) -> SafeString:
    """Return the ``text`` of the Markdown file ``path`` of a version as safe HTML.

    It is cached in the process, because hostile text occupies a reader thread for seconds and a version never changes.
    """
    skill, version = found.skill, found.version
    links = TextLinks(
        slug=skill.slug,
        paths=frozenset(file["path"] for file in version.manifest),
        path=path,
        exact=found.exact,
        repo_url=repository_of(skill.repo_url, version.repo_url),
        commit_sha=version.commit_sha,
        skill_path=folder_of(found.skill, found.version),
    )
    return _rendered(text, links)


@lru_cache(maxsize=128)
def _rendered(text: str, links: TextLinks) -> SafeString:
    return render_markdown(text, links)


def versions(env: WorkerEnv, found: Found) -> list[dict[str, Any]]:
    """Return the newest versions with their state, at most ``MOST_VERSIONS``; quarantined ones have no link."""
    rows = SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=found.skill)
    rows = light_versions(rows).defer("metadata").order_by("-ordinal")
    read = list(rows[: MOST_VERSIONS + 1])
    earliest = next((row.pk for row in reversed(read) if row.quarantined_at is None), None)
    changes = skill_href(found.skill.slug, "compare")
    shown = []
    for row in read[:MOST_VERSIONS]:
        latest = row.version == found.skill.latest_version
        query = "" if latest else f"?{urlencode({'version': row.version})}"
        quarantined = row.quarantined_at is not None
        shown.append(
            {
                "version": row.version,
                "href": "" if quarantined else skill_href(found.skill.slug) + query,
                # Beside the version before it.
                "changes_href": ""
                if quarantined or row.pk == earliest
                else f"{changes}?{urlencode({'to': row.version})}",
                "current": row.pk == found.version.pk,
                "latest": latest,
                "yanked": row.yanked_at is not None,
                "quarantined": quarantined,
                "verdict": verdict_of(row),
                "flag_reason": row.flag_reason,
                "commit_sha": row.commit_sha,
                "published_at": row.created_at,
                # Of what is withheld, not a word is shown.
                "changelog": "" if quarantined else row.changelog,
            }
        )
    return shown


def download_path(found: Found, kind: str) -> str:
    """Return the path of the archive of exactly this version; ``kind`` is ``zip`` or ``tar.gz``."""
    return archive_href(found.skill.slug, found.version.version, kind)


def raw_path(found: Found, path: str) -> str:
    """Return the path of a file's bytes in exactly this version."""
    query = urlencode({"path": path, "version": found.version.version})
    return f"/api/v1/skills/{found.skill.slug}/file?{query}"


def _warning(found: Found) -> str:
    version = found.version
    if version.yanked_at is not None:
        reason = f" The reason given: {version.yank_reason}" if version.yank_reason else ""
        return (
            f"Version {version.version} was withdrawn. It stays for those who use it; do not install it anew.{reason}"
        )
    if found.exact:
        return f"You are looking at version {version.version}. The latest is {found.skill.latest_version}."
    return ""
