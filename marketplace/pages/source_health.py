"""What the page of a skill says about the health of its repository."""

from __future__ import annotations

from typing import Any, Final

from marketplace.pages.skill import Found
from marketplace.repo_health import Health, read_health_sync
from vskill.environments import WorkerEnv

_WORDS: Final = {
    Health.ONLINE: ("Online", "tone-good", "check"),
    Health.STALE: ("No commit for a year", "tone-note", "clock"),
    Health.OFFLINE: ("Gone", "tone-hold", "alert"),
    Health.UNKNOWN: ("Unknown", "", "question"),
}


def repo_health(env: WorkerEnv, found: Found) -> dict[str, Any] | None:
    """Return the health of a skill's repository in words, or ``None`` where nobody has looked yet."""
    health = read_health_sync(env, found.skill.repo_url)
    if health is None:
        return None
    label, tone, icon = _WORDS[health.status]
    return {
        "status": health.status.value,
        "label": label,
        "tone": tone,
        "icon": icon,
        "since": health.since,
        "checked_at": health.checked_at,
        "last_commit_at": health.last_commit_at,
        "seen_at": health.seen_at,
        "reason": health.reason,
    }
