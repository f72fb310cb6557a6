"""The dialect of the vskill client: search, updates, differences, block list. Its errors are JSON."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponse

from marketplace.api.http import SAFE, Asked, Refused, api_view, json_answer, json_body, limit_of, parameter
from marketplace.api.lookup import archive_content, exact_version, named_skill, visible_skill
from marketplace.api.shapes import skill_shape
from marketplace.api.trust import certification_tier
from marketplace.artifacts.archives import read_member
from marketplace.artifacts.diffs import FileChange, compare
from marketplace.catalog import find_skill_sync, is_visible
from marketplace.models import SkillEntry, SkillVersion
from marketplace.records import Visibility
from marketplace.skills.blocklist import Block, BlockKind, InvalidBlock, is_blocked, list_blocks
from marketplace.skills.search import search_sync
from marketplace.skills.versions import parse_version
from vskill.environments import WorkerEnv

_MOST_CHECKED: Final = 200


@api_view(*SAFE)
def search(asked: Asked) -> HttpResponse:
    """Search; one hit more than asked for is looked for, to say whether there are more."""
    limit = limit_of(asked, 7, 100)
    hits = search_sync(asked.env, parameter(asked, "q"), limit=limit + 1)
    results = [{**skill_shape(hit.skill, None), "score": round(hit.score, 4)} for hit in hits[:limit]]
    return json_answer({"results": results, "pagination": {"hasMore": len(hits) > limit}})


@api_view("POST")
def check_updates(asked: Asked) -> HttpResponse:
    """Say for each installed skill whether there is a newer version; its name comes back as it was sent."""
    installed = json_body(asked).get("skills")
    if not isinstance(installed, list) or len(installed) > _MOST_CHECKED:
        raise Refused(400, f"Send at most {_MOST_CHECKED} skills as a list.")
    return json_answer({"results": [_update(asked.env, item) for item in installed if isinstance(item, dict)]})


def _update(env: WorkerEnv, item: dict[str, Any]) -> dict[str, Any]:
    name, installed = str(item.get("name", "")), str(item.get("currentVersion", ""))
    try:
        owner, repo, slug = name.split("/") if name.count("/") == 2 else ("", "", name)
        skill = visible_skill(env, slug, owner=owner, repo=repo)
    except Refused:
        return {"name": name, "installed": installed, "latest": None, "updateAvailable": False}
    latest, present = parse_version(skill.latest_version), parse_version(installed)
    newer = latest is not None and (latest > present if present is not None else skill.latest_version != installed)
    return {
        "name": name,
        "installed": installed,
        "latest": skill.latest_version or None,
        "updateAvailable": newer,
        "certTier": certification_tier(skill.verdict),
    }


@api_view("POST")
def installs(asked: Asked) -> HttpResponse:
    """Take note of nothing: downloads are counted where they happen, and a report proves none."""
    json_body(asked)
    return json_answer({"ok": True, "counted": False})


@api_view(*SAFE)
def difference(asked: Asked) -> HttpResponse:
    """Answer ``versions/diff``: what changed in words, and as one patch."""
    changes = _compare(asked)
    patches = [f"--- {one.path}\n+++ {one.path}\n{one.patch}" for one in changes if one.patch]
    counts = [f"{one.status} {one.path}" for one in changes]
    return json_answer(
        {
            "from": parameter(asked, "from"),
            "to": parameter(asked, "to"),
            "diffSummary": ", ".join(counts) or "nothing changed",
            "contentDiff": "\n".join(patches),
        }
    )


@api_view(*SAFE)
def comparison(asked: Asked) -> HttpResponse:
    """Answer ``versions/compare``: each file that changed, with its lines."""
    files = [
        {
            "filename": one.path,
            "status": one.status,
            "additions": one.additions,
            "deletions": one.deletions,
            "patch": one.patch,
        }
        for one in _compare(asked)
    ]
    return json_answer({"source": "local-content", "files": files})


def _compare(asked: Asked) -> list[FileChange]:
    skill = named_skill(asked)
    before, after = (exact_version(asked.env, skill, parameter(asked, name)) for name in ("from", "to"))
    archives = {version.pk: archive_content(asked.env, version.zip_sha256) for version in (before, after)}

    def read_file(version: SkillVersion, path: str) -> bytes:
        return read_member(archives[version.pk], path)

    return compare(before, after, read_file)


@api_view(*SAFE)
def blocklist(asked: Asked) -> HttpResponse:
    """List the skills that are quarantined, and the contents that are blocked by their hash."""
    rows = SkillEntry.objects.using(asked.env.database).filter(
        namespace=asked.env.name, visibility=Visibility.QUARANTINED
    )
    entries = [_quarantined(skill) for skill in rows.order_by("-changed_at")[:1000]]
    entries += [_blocked(block) for block in list_blocks(asked.env) if block.kind is BlockKind.CONTENT]
    last = max((entry["discoveredAt"] for entry in entries), default=None)
    return json_answer({"entries": entries, "count": len(entries), "lastUpdated": last}, max_age=60)


@api_view(*SAFE)
def blocklist_check(asked: Asked) -> HttpResponse:
    """Say whether a skill or a repository must not be installed; a name alone blocks only the skill that has it."""
    name, repo_url = parameter(asked, "name"), parameter(asked, "repoUrl", longest=1024)
    skill = find_skill_sync(asked.env, name.rpartition("/")[2], hidden=True) if name else None
    if skill is not None and not is_visible(skill) and (not repo_url or repo_url == skill.repo_url):
        return json_answer({"blocked": True, "entry": _quarantined(skill), "rejected": False})
    try:
        block = is_blocked(asked.env, repo_url) if repo_url else None
    except InvalidBlock as error:
        raise Refused(400, str(error)) from error
    if block is not None:
        return json_answer({"blocked": True, "entry": {**_blocked(block), "skillName": name}, "rejected": False})
    return json_answer({"blocked": False, "rejected": False})


def _entry(name: str, reason: str, discovered_at: str, **more: str) -> dict[str, Any]:
    return {
        "skillName": name,
        "threatType": "policy",
        "severity": "critical",
        "reason": reason,
        "evidenceUrls": [],
        "discoveredAt": discovered_at,
        **more,
    }


def _quarantined(skill: SkillEntry) -> dict[str, Any]:
    changed = skill.changed_at.isoformat() if skill.changed_at else ""
    return _entry(skill.slug, "withheld by this registry", changed, sourceUrl=skill.repo_url)


def _blocked(block: Block) -> dict[str, Any]:
    more = {"contentHash": block.value} if block.kind is BlockKind.CONTENT else {"sourceUrl": block.value}
    return _entry("", block.reason, block.created_at, **more)
