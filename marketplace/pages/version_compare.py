"""Two versions of one skill side by side: verdicts, what each can touch, and every file that differs, line by line."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, urlencode

from marketplace.addresses import file_href, skill_href
from marketplace.artifacts.archives import read_member
from marketplace.artifacts.diffs import MAX_FILES_COMPARED, FileChange, compare
from marketplace.catalog import fetchable_versions, find_version_sync
from marketplace.judgement import verdict_of
from marketplace.models import ArchiveBlob, SkillEntry, SkillVersion
from marketplace.pages import skill as skill_page
from marketplace.pages.absence import absent
from marketplace.pages.decide import deeds_in_words
from marketplace.pages.patches import MOST_LINES, shown_changes
from marketplace.pages.version_changes import changes_between, changes_href
from marketplace.pages.wording import verdict_words
from marketplace.pictures.reach import Target, draw_reach, reach_of
from marketplace.skills.newest_scan import newest_scan
from vskill.environments import WorkerEnv

# In the choice; older ones can be named in the address.
MOST_OFFERED: Final = 100


def version_compare_context(env: WorkerEnv, slug: str, before: str, after: str) -> str | dict[str, Any]:
    """Return the context of the comparison of two versions of the skill that has or had ``slug``.

    Where ``after`` is empty it is the latest version, and where ``before`` is empty it is the one that was published
    before ``after``. A former slug gives the present one instead. Raises ``NotThere`` for what is not shown.
    """
    found = skill_page.find(env, slug, after)
    if found is None:
        raise absent(env, slug, after)
    if found.skill.slug != slug:
        return found.skill.slug
    first = find_version_sync(env, found.skill, before) if before else _before(env, found)
    if first is None and before:
        raise absent(env, slug, before)
    context = {
        **skill_page.head(found),
        "after": _side(found.skill, found.version),
        "before": None,
        "offered": _offered(env, found, first),
    }
    if first is None:
        return context
    shown = {**context, "before": _side(found.skill, first), "same": first.pk == found.version.pk}
    shown["sides"] = [shown["before"], shown["after"]]
    return shown if shown["same"] else {**shown, **_differences(env, found.skill, first, found.version)}


def _fetchable(env: WorkerEnv, skill: SkillEntry) -> Any:
    return fetchable_versions(SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=skill))


def _before(env: WorkerEnv, found: skill_page.Found) -> SkillVersion | None:
    earlier = _fetchable(env, found.skill).filter(ordinal__lt=found.version.ordinal)
    version: SkillVersion | None = earlier.select_related("skill").order_by("-ordinal").first()
    return version


def _offered(env: WorkerEnv, found: skill_page.Found, first: SkillVersion | None) -> list[str]:
    """Return the numbers of the newest versions, and those of both that are shown."""
    numbers = _fetchable(env, found.skill).order_by("-ordinal").values_list("version", flat=True)
    shown = [one.version for one in (found.version, first) if one is not None]
    return list(dict.fromkeys([*numbers[:MOST_OFFERED], *shown]))


def _side(skill: SkillEntry, version: SkillVersion) -> dict[str, Any]:
    latest = version.version == skill.latest_version
    newest = newest_scan(version)
    return {
        "version": version.version,
        "href": skill_href(skill.slug) + ("" if latest else f"?{urlencode({'version': version.version})}"),
        "latest": latest,
        "yanked": version.yanked_at is not None,
        "verdict": verdict_of(version),
        "flag_reason": version.flag_reason,
        "again": {"at": newest.scanned_at, "label": verdict_words(newest.verdict).label} if newest.again else None,
        "published_at": version.created_at,
        "commit_sha": version.commit_sha,
        "files": len(version.manifest),
        "size": version.size,
        "license": version.license,
    }


def _differences(env: WorkerEnv, skill: SkillEntry, first: SkillVersion, second: SkillVersion) -> dict[str, Any]:
    touched = [reach_of(skill_page.capabilities_of_version(one)) for one in (first, second)]
    pages = [_pages_of(skill, one) for one in (first, second)]
    changes = shown_changes(_compared(env, first, second))
    for one in changes:
        one["before_href"] = pages[0].get(one["file"], "")
        one["after_href"] = pages[1].get(one["file"], "")
        one["same_content"] = _sha256(first, one["file"]) == _sha256(second, one["file"])
        one["executable"] = _executable(first, second, one["file"])
    return {
        "turned": first.ordinal > second.ordinal,
        "turned_href": changes_href(skill.slug, second.version, first.version),
        "changes": changes_between(first, second),
        "drawings": [draw_reach(one) for one in touched],
        "reach_rows": [_touched(*both) for both in zip(*touched, strict=True)],
        "files": changes,
        "added_lines": sum(one["additions"] or 0 for one in changes),
        "removed_lines": sum(one["deletions"] or 0 for one in changes),
        "uncounted": sum(1 for one in changes if one["too_large"]),
        "left_out": sum(one["left_out"] for one in changes),
        "most_lines": MOST_LINES,
        "most_files": MAX_FILES_COMPARED,
        "api_href": f"/api/v1/skills/{quote(skill.slug)}/versions/compare?"
        + urlencode({"from": first.version, "to": second.version}),
    }


def _pages_of(skill: SkillEntry, version: SkillVersion) -> dict[str, str]:
    query = urlencode({"version": version.version})
    return {file["path"]: f"{file_href(skill.slug, file['path'])}?{query}" for file in version.manifest}


def _sha256(version: SkillVersion, path: str) -> str:
    return str((version.file(path) or {}).get("sha256", ""))


def _executable(first: SkillVersion, second: SkillVersion, path: str) -> str:
    """Return in words whether a file can be started since then, or no longer; empty where that is as it was."""
    if second.file(path) is None:
        return ""
    was, now = (bool((one.file(path) or {}).get("executable")) for one in (first, second))
    if was == now:
        return ""
    return "executable now" if now else "no longer executable"


def _touched(before: Target, after: Target) -> dict[str, Any]:
    return {"name": after.name, "cells": [_cell(before), _cell(after)], "new": bool(after.seen) and before.seen == ()}


def _cell(target: Target) -> dict[str, Any]:
    return {"known": target.seen is not None, "seen": deeds_in_words(target.seen or ())}


def _compared(env: WorkerEnv, first: SkillVersion, second: SkillVersion) -> list[FileChange]:
    blobs = ArchiveBlob.objects.using(env.database)
    archives = {
        one.pk: bytes(blobs.values_list("content", flat=True).get(sha256=one.zip_sha256)) for one in (first, second)
    }

    def read_file(version: SkillVersion, path: str) -> bytes:
        return read_member(archives[version.pk], path)

    return compare(first, second, read_file)
