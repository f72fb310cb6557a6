"""The health of a skill's repository, for programs."""

from __future__ import annotations

from django.http import HttpResponse

from marketplace.api.http import SAFE, ApiCall, api_view, json_response
from marketplace.api.lookup import named_skill
from marketplace.repo_health import read_health_sync
from vskill.kv.clock import isoformat


@api_view(*SAFE)
def repo_health(call: ApiCall) -> HttpResponse:
    """Return whether the repository of a skill answers; ``status`` is null where nobody has looked yet."""
    skill = named_skill(call)
    health = read_health_sync(call.env, skill.repo_url)
    if health is None:
        return json_response({"slug": skill.slug, "repoUrl": skill.repo_url, "status": None})
    return json_response(
        {
            "slug": skill.slug,
            "repoUrl": skill.repo_url,
            "status": health.status.value,
            "since": isoformat(health.since),
            "checkedAt": isoformat(health.checked_at),
            "lastCommitAt": isoformat(health.last_commit_at) if health.last_commit_at else None,
            "lastSeenAt": isoformat(health.seen_at) if health.seen_at else None,
            "reason": health.reason or None,
        }
    )
