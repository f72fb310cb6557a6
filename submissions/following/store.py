"""Begin and end to follow a repository, find those that are due, and write what was seen of one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.db import transaction
from django.db.models.functions import Now

from marketplace.following import (
    Followed,
    FollowState,
    follow_key,
    follow_namespace,
    followed_in,
    read_followed_sync,
)
from marketplace.models import FollowedEntry
from marketplace.skills.blocklist import is_blocked
from marketplace.skills.store import record_event
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.clock import database_now
from vskill.kv.errors import VersionConflict
from vskill.kv.outcomes import Outcome

logger = logging.getLogger(__name__)

ACTOR: Final = "following"
_ATTEMPTS: Final = 5


class NotFollowed(VskillError):
    """Nobody follows this repository in this environment; nothing was changed."""

    code = "not_followed"


class CannotFollow(VskillError):
    """A repository cannot be followed as it was asked; nothing was changed."""

    code = "cannot_follow"


@dataclass(frozen=True)
class Event:
    """What the history of a followed repository is told: a word, and a sentence."""

    action: str
    words: str


def follow(env: WorkerEnv, repo_url: str, *, branch: str, tags: str, actor: str, reason: str = "") -> Followed:
    """Follow the repository at a normalised address, or follow another branch or other tags of it, and return it.

    ``branch`` and ``tags`` are those of ``Followed``; ``actor`` and ``reason`` go into its history. It is looked at in
    the next run. Where it is followed in this very way already, nothing changes. Raises ``CannotFollow`` for a
    repository on the block list.
    """
    if (block := is_blocked(env, repo_url)) is not None:
        raise CannotFollow(f"That repository is on the block list ({block.reason}). It is not followed.")

    def begin(before: Followed | None, now: datetime) -> Followed | None:
        if before is not None and before.is_active and (before.branch, before.tags) == (branch, tags):
            return None
        return Followed(repo_url, now, actor, branch=branch, tags=tags, look_at=now, due_at=now)

    what = f"tags {tags}" if tags else branch or "its default branch"
    written = _change(env, repo_url, begin, Event("followed", f"{what}. {reason}".strip()), actor)
    if written is None:
        raise CannotFollow("It is being changed at this moment. Nothing was done; try again.")
    return written


def unfollow(env: WorkerEnv, repo_url: str, *, actor: str, reason: str = "") -> None:
    """Follow the repository at a normalised address no longer; what was submitted and published from it stays.

    ``actor`` and ``reason`` go into its history. Raises ``NotFollowed``.
    """

    def end(before: Followed | None, _now: datetime) -> Followed | None:
        if before is None or not before.is_active:
            raise NotFollowed(f"Nobody follows {repo_url} here. Nothing was changed.")
        return replace(before, state=FollowState.ENDED, tips={}, left={}, waits=(), look_at=None, due_at=None)

    if _change(env, repo_url, end, Event("unfollowed", reason), actor) is None:
        raise CannotFollow("It is being changed at this moment. Nothing was done; try again.")


def ask_for_look(env: WorkerEnv, repo_url: str, least_after: Callable[[Followed, datetime], datetime]) -> Followed:
    """Let a followed repository be looked at soon, in the caller's transaction, and return it; raise ``NotFollowed``.

    ``least_after`` gets what is known and the present time, and returns when the look may be at the earliest.
    """

    def sooner(before: Followed | None, now: datetime) -> Followed | None:
        if before is None or not before.is_active:
            raise NotFollowed(f"Nobody follows {repo_url} here. Nothing was changed.")
        due = least_after(before, now)
        return replace(before, asked_at=now, look_at=due, due_at=due)

    asked = _change(env, repo_url, sooner, None, ACTOR)
    if asked is None:
        raise CannotFollow("It is being changed at this moment. Nothing was done; try again.")
    return asked


def _change(
    env: WorkerEnv,
    repo_url: str,
    change: Callable[[Followed | None, datetime], Followed | None],
    event: Event | None,
    actor: str,
) -> Followed | None:
    """Write what ``change`` makes of a followed repository, and return it; ``None`` where others wrote all the time."""
    namespace, key = follow_namespace(env), follow_key(repo_url)
    for _attempt in range(_ATTEMPTS):
        outcome = namespace.get_sync(key)
        if not outcome.absent:
            outcome.require()
        before = followed_in(outcome)
        after = change(before, database_now(env.database))
        if after is None:
            return before
        try:
            with transaction.atomic(using=env.database):
                namespace.put_sync(key, after.to_value(), expect_version=outcome.version)
                if event is not None:
                    record_event(env, key, event.action, actor=actor, reason=event.words)
        except VersionConflict:
            continue
        return after
    return None


def due_followed(env: WorkerEnv, most: int) -> list[str]:
    """Return the addresses of at most ``most`` repositories that are due by the database's clock, the oldest first."""
    rows = FollowedEntry.objects.using(env.database).live().filter(namespace=env.name, due_at__lte=Now())
    return list(rows.order_by("due_at", "key").values_list("repo_url", flat=True)[:most])


def count_followed(env: WorkerEnv) -> int:
    """Return how many repositories are followed."""
    return FollowedEntry.objects.using(env.database).filter(namespace=env.name, due_at__isnull=False).count()


def all_followed(env: WorkerEnv) -> list[Followed]:
    """Return every followed repository in the order of the addresses."""
    rows = FollowedEntry.objects.using(env.database).live().filter(namespace=env.name, due_at__isnull=False)
    urls = rows.order_by("repo_url").values_list("repo_url", flat=True)
    return [found for url in urls if (found := read_followed_sync(env, url)) is not None]


def write_seen(env: WorkerEnv, outcome: Outcome, after: Followed, events: tuple[Event, ...] = ()) -> Outcome | None:
    """Write ``after``, what was seen of the repository of ``env`` that was read as ``outcome``; return it as it now is.

    ``events`` go into its history in the same transaction. A webhook that came meanwhile is not lost: it is then due
    again at once. ``None`` where somebody else wrote anything else: nothing is written, and the next run does it again.
    """
    namespace, key = follow_namespace(env), follow_key(after.repo_url)
    before = followed_in(outcome)
    for _attempt in range(_ATTEMPTS):
        try:
            with transaction.atomic(using=env.database):
                namespace.put_sync(key, after.to_value(), expect_version=outcome.version)
                for event in events:
                    record_event(env, key, event.action, actor=ACTOR, reason=event.words)
            return namespace.get_sync(key)
        except VersionConflict:
            outcome = namespace.get_sync(key)
            now = followed_in(outcome)
            if before is None or now is None or _unasked(now) != _unasked(before):
                logger.info("%s was changed by somebody else while it was looked at", after.repo_url)
                return None
            after = replace(after, asked_at=now.asked_at, look_at=now.look_at, due_at=now.due_at)
    return None


def _unasked(one: Followed) -> Followed:
    return replace(one, asked_at=None, look_at=None, due_at=None)
