"""A followed repository: the value of its entry, which pages read and ``submissions.following`` writes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from marketplace.models import FollowedEntry
from marketplace.models.following import FOLLOW_PREFIX
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat, parse_isoformat
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Outcome


class FollowState(StrEnum):
    """What the last look at a followed repository came to.

    ``FOLLOWING``: it answers, and nothing was taken back. ``REWRITTEN``: its branch no longer has the commit that was
    seen before, or a tag is on another commit. ``DELETED``: the repository, the branch or a tag is not there any more.
    ``UNREACHABLE``: it could not be read. ``BLOCKED``: it is on the block list, and was not looked at. ``ENDED``:
    nobody follows it any more.
    """

    FOLLOWING = "following"
    REWRITTEN = "rewritten"
    DELETED = "deleted"
    UNREACHABLE = "unreachable"
    BLOCKED = "blocked"
    ENDED = "ended"


@dataclass(frozen=True)
class Told:
    """What was taken back in a repository, in a sentence, and when that was seen."""

    at: datetime
    words: str


@dataclass(frozen=True)
class Followed:
    """A followed repository.

    ``branch`` is the full name of the ref that is followed, '' for the default branch; where there is a pattern
    ``tags``, it is the tags that fit it. ``since`` and ``by`` say when and who began to follow it. ``tips`` are the
    commits of its refs as they were seen last, and ``left`` those of them that are still to be submitted; they wait
    until no submission of the skills with the identities ``waits`` is on its way. ``commit_ref``, ``commit_sha`` and
    ``submitted_at`` tell what was submitted last. ``seen_at`` is when it answered last, ``looked_at`` when it was asked
    last and ``look_at`` when it will be; ``due_at`` is that or earlier, where something is left. ``asked_at`` is when a
    webhook named it last. ``default_ref`` is the full name of its default branch as its host told it at ``default_at``,
    '' where that is not followed or has none. ``reason`` is a sentence where something is wrong, ``failures`` counts
    the looks that failed, one after another.
    """

    repo_url: str
    since: datetime
    by: str
    branch: str = ""
    tags: str = ""
    state: FollowState = FollowState.FOLLOWING
    reason: str = ""
    tips: Mapping[str, str] = field(default_factory=dict)
    left: Mapping[str, str] = field(default_factory=dict)
    waits: tuple[str, ...] = ()
    commit_ref: str = ""
    commit_sha: str = ""
    submitted_at: datetime | None = None
    seen_at: datetime | None = None
    looked_at: datetime | None = None
    look_at: datetime | None = None
    due_at: datetime | None = None
    asked_at: datetime | None = None
    default_ref: str = ""
    default_at: datetime | None = None
    failures: int = 0
    told: tuple[Told, ...] = ()

    @property
    def is_active(self) -> bool:
        """Return whether it is still followed."""
        return self.state is not FollowState.ENDED

    @property
    def what(self) -> str:
        """Return what is followed, in words."""
        if self.tags:
            return f"tags {self.tags}"
        return f"branch {self.branch.removeprefix('refs/heads/')}" if self.branch else "its default branch"

    def to_value(self) -> dict[str, Any]:
        """Return the value of the entry; ``from_value`` reads it back."""
        value: dict[str, Any] = {}
        for name in _NAMES:
            found = getattr(self, name)
            value[_written(name)] = isoformat(found) if isinstance(found, datetime) else found
        value |= {"tips": dict(self.tips), "left": dict(self.left), "waits": list(self.waits)}
        value["told"] = [[isoformat(one.at), one.words] for one in self.told]
        return value

    @classmethod
    def from_value(cls, value: Any) -> Followed | None:
        """Return the followed repository in a decoded value, or ``None`` where the value is none."""
        if not isinstance(value, dict) or value.get("state") not in set(FollowState):
            return None
        since = parse_isoformat(value.get("since"))
        if since is None or not isinstance(value.get("repoUrl"), str):
            return None

        def text(name: str) -> str:
            return str(value.get(name) or "")

        def time(name: str) -> datetime | None:
            return parse_isoformat(value.get(name))

        failures = value.get("failures")
        return cls(
            since=since,
            state=FollowState(value["state"]),
            tips=_refs(value.get("tips")),
            left=_refs(value.get("left")),
            waits=tuple(str(one) for one in _list(value.get("waits"))),
            failures=failures if isinstance(failures, int) else 0,
            told=tuple(
                Told(at, str(one[1]))
                for one in _list(value.get("told"))
                if isinstance(one, list) and len(one) == 2 and (at := parse_isoformat(one[0])) is not None
            ),
            repo_url=text("repoUrl"),
            by=text("by"),
            branch=text("branch"),
            tags=text("tags"),
            reason=text("reason"),
            commit_ref=text("commitRef"),
            commit_sha=text("commitSha"),
            submitted_at=time("submittedAt"),
            seen_at=time("seenAt"),
            looked_at=time("lookedAt"),
            look_at=time("lookAt"),
            due_at=time("dueAt"),
            asked_at=time("askedAt"),
            default_ref=text("defaultRef"),
            default_at=time("defaultAt"),
        )


_NAMES: Final = tuple(one.name for one in fields(Followed))


def _written(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _refs(value: Any) -> dict[str, str]:
    return {str(ref): str(sha) for ref, sha in value.items()} if isinstance(value, dict) else {}


def follow_key(repo_url: str) -> str:
    """Return the key of the entry of a followed repository; ``repo_url`` is its normalised address."""
    return FOLLOW_PREFIX + hashlib.sha256(repo_url.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def follow_namespace(env: WorkerEnv) -> KVNamespace:
    """Return the KV namespace of the repositories that ``env`` follows."""
    return KVNamespace(FollowedEntry, env)


def followed_in(outcome: Outcome) -> Followed | None:
    """Return the followed repository that was read, or ``None`` where there is none that can be read."""
    return Followed.from_value(outcome.value) if outcome.found else None


def read_followed_sync(env: WorkerEnv, repo_url: str) -> Followed | None:
    """Return what is known of a repository that is followed; ``None`` where nobody follows it."""
    found = followed_in(follow_namespace(env).get_sync(follow_key(repo_url)))
    return found if found is not None and found.is_active else None
