"""The health of a repository as it was seen last: the value of its entry, which pages and the API read."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat, parse_isoformat
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Outcome

HEALTH_PREFIX: Final = "repo-health:"


class Health(StrEnum):
    """What was seen of a repository.

    ``ONLINE``: it answers, and its newest commit is younger than a year. ``STALE``: it answers, and that commit is
    older. ``OFFLINE``: its host says that there is no such repository. ``UNKNOWN``: nothing can be said, because the
    host did not answer, refused, or answered something else.
    """

    ONLINE = "ONLINE"
    STALE = "STALE"
    OFFLINE = "OFFLINE"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class RepoHealth:
    """What is known of a repository.

    ``since`` is when it was first seen in this ``status``, ``checked_at`` when it was looked at last and ``due_at``
    when it will be again. ``last_commit_at`` and ``commit_sha`` are those of the newest commit that was ever seen of
    its default branch. ``seen_at`` is when it last answered. ``reason`` is a sentence for OFFLINE and UNKNOWN, and
    ``failures`` counts the looks that ended in one of these two, one after another.
    """

    repo_url: str
    status: Health
    since: datetime
    checked_at: datetime
    due_at: datetime
    last_commit_at: datetime | None = None
    commit_sha: str = ""
    seen_at: datetime | None = None
    reason: str = ""
    failures: int = 0

    def to_value(self) -> dict[str, Any]:
        """Return the value of the entry; ``from_value`` reads it back."""
        return {
            "repoUrl": self.repo_url,
            "status": self.status.value,
            "since": isoformat(self.since),
            "checkedAt": isoformat(self.checked_at),
            "dueAt": isoformat(self.due_at),
            "lastCommitAt": isoformat(self.last_commit_at) if self.last_commit_at else None,
            "commitSha": self.commit_sha,
            "seenAt": isoformat(self.seen_at) if self.seen_at else None,
            "reason": self.reason,
            "failures": self.failures,
        }

    @classmethod
    def from_value(cls, value: Any) -> RepoHealth | None:
        """Return the health in a decoded value, or ``None`` where the value is none."""
        if not isinstance(value, dict) or value.get("status") not in set(Health):
            return None
        since, checked, due = (parse_isoformat(value.get(name)) for name in ("since", "checkedAt", "dueAt"))
        if since is None or checked is None or due is None:
            return None
        failures = value.get("failures")
        return cls(
            repo_url=str(value.get("repoUrl", "")),
            status=Health(value["status"]),
            since=since,
            checked_at=checked,
            due_at=due,
            last_commit_at=parse_isoformat(value.get("lastCommitAt")),
            commit_sha=str(value.get("commitSha", "")),
            seen_at=parse_isoformat(value.get("seenAt")),
            reason=str(value.get("reason", "")),
            failures=failures if isinstance(failures, int) else 0,
        )


def health_key(repo_url: str) -> str:
    """Return the key of the health of a repository: one entry for all skills that were published from it."""
    return HEALTH_PREFIX + hashlib.sha256(repo_url.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def health_in(outcome: Outcome) -> RepoHealth | None:
    """Return the health that was read, or ``None`` where there is none that can be read."""
    return RepoHealth.from_value(outcome.value) if outcome.found else None


def read_health_sync(env: WorkerEnv, repo_url: str) -> RepoHealth | None:
    """Return what is known of the repository at a normalised URL; ``None`` where it was never looked at."""
    return health_in(KVNamespace(KVEntry, env).get_sync(health_key(repo_url)))
