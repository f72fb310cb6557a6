"""The block list for clients: what must not be installed, and whether one skill or repository is among it."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponse

from marketplace.api.bounds import BLOCKLIST_LIMIT, LONGEST_CURSOR, LONGEST_REPOSITORY
from marketplace.api.http import (
    SAFE,
    ApiCall,
    ApiError,
    api_view,
    json_response,
    parameter,
    requested_limit,
    takes_only,
)
from marketplace.api.trust import said_of_skill
from marketplace.catalog import find_skill_sync, is_visible
from marketplace.models import SkillEntry
from marketplace.skills.blocklist import Block, BlockKind, InvalidBlock, block_page, is_blocked
from marketplace.skills.visibility import quarantined_skills
from vskill.environments import WorkerEnv
from vskill.kv.cursors import encode_cursor
from vskill.kv.keyset import binding_of, bound_position, keyset_page, no_cursor
from vskill.visitors.reads import list_reads

# The parts of the list, in its order. A client that reads one page alone gets all contents where it can.
_CONTENTS: Final = "contents"
_SKILLS: Final = "skills"


@api_view(*SAFE, reads=list_reads)
def blocklist(call: ApiCall) -> HttpResponse:
    """List blocked content hashes, and then quarantined skills: ``nextCursor`` is null on the last page."""
    takes_only(call, "limit", "cursor")
    limit = requested_limit(call, *BLOCKLIST_LIMIT)
    entries, following = _page(call.env, parameter(call, "cursor", longest=LONGEST_CURSOR), limit)
    last = max((entry["discoveredAt"] for entry in entries), default=None)
    body = {"entries": entries, "count": len(entries), "lastUpdated": last, "nextCursor": following}
    return json_response(body, max_age=60)


def _page(env: WorkerEnv, cursor: str, limit: int) -> tuple[list[dict[str, Any]], str | None]:
    """Return a page of both parts, of which the second begins on the page on which the first ends."""
    binding, entries = binding_of(env.name, "blocklist"), []
    position = bound_position(binding, cursor) if cursor else [_CONTENTS, ""]
    if len(position) != 2 or position[0] not in (_CONTENTS, _SKILLS) or not isinstance(position[1], str):
        raise no_cursor()
    part, inner = position
    if part == _CONTENTS:
        blocks, following = block_page(env, limit=limit, cursor=inner, kind=BlockKind.CONTENT)
        entries, inner = [_blocked(block) for block in blocks], ""
        if following is not None:
            return entries, encode_cursor(binding, _CONTENTS, following)
    rows = quarantined_skills(SkillEntry.objects.using(env.database).filter(namespace=env.name))
    left = limit - len(entries)
    if left == 0:
        return entries, encode_cursor(binding, _SKILLS, "") if rows.exists() else None
    skills, following = keyset_page(rows, ("-pk",), binding=binding, cursor=inner, limit=left)
    entries += [_quarantined(skill) for skill in skills]
    return entries, encode_cursor(binding, _SKILLS, following) if following is not None else None


@api_view(*SAFE)
def blocklist_check(call: ApiCall) -> HttpResponse:
    """Return whether a skill or repository must not be installed; a name alone blocks only the skill of that name."""
    name, repo_url = parameter(call, "name"), parameter(call, "repoUrl", longest=LONGEST_REPOSITORY)
    skill = find_skill_sync(call.env, name.rpartition("/")[2], hidden=True) if name else None
    if skill is not None and not is_visible(skill) and (not repo_url or repo_url == skill.repo_url):
        return json_response({"blocked": True, "entry": _quarantined(skill), "rejected": False})
    try:
        block = is_blocked(call.env, repo_url) if repo_url else None
    except InvalidBlock as error:
        raise ApiError(400, str(error)) from error
    if block is not None:
        return json_response({"blocked": True, "entry": {**_blocked(block), "skillName": name}, "rejected": False})
    body: dict[str, Any] = {"blocked": False, "rejected": False}
    if skill is not None and is_visible(skill) and (said := said_of_skill(skill)).tainted:
        body |= {"tainted": True, "taintReason": said.warning}
    return json_response(body)


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
