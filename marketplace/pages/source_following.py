"""What the page of a skill says about the following of its repository."""

from __future__ import annotations

from typing import Any, Final

from marketplace.following import FollowState, read_followed_sync
from marketplace.pages.skill import Found
from vskill.environments import WorkerEnv

_WORDS: Final = {
    FollowState.FOLLOWING: ("Followed", "tone-good", "check"),
    FollowState.REWRITTEN: ("History rewritten", "tone-hold", "alert"),
    FollowState.DELETED: ("Deleted at its source", "tone-hold", "alert"),
    FollowState.UNREACHABLE: ("Cannot be read", "tone-note", "question"),
    FollowState.BLOCKED: ("Blocked", "tone-bad", "ban"),
}


def following(env: WorkerEnv, found: Found) -> dict[str, Any] | None:
    """Return how a skill's repository is followed, in words, or ``None`` where nobody follows it."""
    followed = read_followed_sync(env, found.skill.repo_url)
    if followed is None:
        return None
    label, tone, icon = _WORDS[followed.state]
    return {
        "label": label,
        "tone": tone,
        "icon": icon,
        "what": followed.what,
        "since": followed.since,
        "seen_at": followed.seen_at,
        "reason": followed.reason,
        "commit_sha": followed.commit_sha,
        "submitted_at": followed.submitted_at,
        "waits": bool(followed.left and followed.waits),
        # The reason of the present state is said already.
        "told": [one for one in followed.told if one.words != followed.reason],
    }
