"""A followed repository as JSON, for commands."""

from __future__ import annotations

from typing import Any

from marketplace.following import Followed
from vskill.kv.clock import isoformat


def followed_as_json(one: Followed) -> dict[str, Any]:
    """Return what is known of a followed repository as plain values for ``json.dumps``."""
    return {
        "repoUrl": one.repo_url,
        "branch": one.branch.removeprefix("refs/heads/"),
        "tags": one.tags,
        "state": one.state.value,
        "reason": one.reason,
        "since": isoformat(one.since),
        "by": one.by,
        "seenAt": isoformat(one.seen_at) if one.seen_at else None,
        "tips": len(one.tips),
        "waiting": len(one.left),
        "commitSha": one.commit_sha,
        "submittedAt": isoformat(one.submitted_at) if one.submitted_at else None,
        "told": [{"at": isoformat(told.at), "words": told.words} for told in one.told],
    }
