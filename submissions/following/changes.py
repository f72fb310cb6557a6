"""What has changed in a followed repository since it was looked at last: what is new, moved and gone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Final

from marketplace.following import Followed, FollowState, Told
from submissions.following.store import Event
from submissions.source.places import is_possible_ref
from vskill.hidden_characters import visible

HEAD: Final = "HEAD"
HEADS: Final = "refs/heads/"
TAGS: Final = "refs/tags/"
MOST_TAGS: Final = 1000
_MOST_TOLD: Final = 5
_MOST_NAMED: Final = 3
_PARTS: Final = re.compile(r"\d+|[^\d]+")
_STAYS: Final = "What is published stays."

Seen = tuple[Followed, tuple[Event, ...]]
"""A followed repository after a look, and what its history is told."""


def pattern_of(followed: Followed) -> str:
    """Return what its host is asked for."""
    return f"{TAGS}*" if followed.tags else followed.branch or HEAD


def chosen(followed: Followed, commits: Mapping[str, str]) -> dict[str, str]:
    """Return those of the refs of a repository that are followed, with their commits."""
    if not followed.tags:
        ref = pattern_of(followed)
        return {ref: commits[ref]} if ref in commits else {}
    return {
        ref: sha
        for ref, sha in commits.items()
        if ref.startswith(TAGS) and is_possible_ref(ref) and fnmatchcase(ref.removeprefix(TAGS), followed.tags)
    }


def in_order(refs: Iterable[str]) -> list[str]:
    """Return tags in the order of the versions that they name: v1.9 before v1.10, and a pre-release before it."""
    return sorted(refs, key=_version)


def _version(ref: str) -> tuple[tuple[int, ...], bool, tuple[tuple[int, int | str], ...]]:
    name = ref.removeprefix(TAGS)
    numbers, dash, _rest = name.partition("-")
    parts = tuple((0, int(one)) if one.isdecimal() and one.isascii() else (1, one) for one in _PARTS.findall(name))
    return tuple(int(one) for one in re.findall(r"[0-9]{1,12}", numbers)), not dash, parts


def branch_seen(before: Followed, tips: Mapping[str, str], now: datetime, *, went_on: bool | None) -> Seen:
    """Return what a look at ``now`` makes of a followed branch; ``went_on`` says that its old commit is behind the new.

    ``None`` is not known, or not asked because nothing changed.
    """
    ref = pattern_of(before)
    name = "The default branch" if ref == HEAD else f"The branch {_shown([ref])}"
    if ref not in tips:
        gone = f"{name} is not there any more. {_STAYS}" if before.tips else f"{name} is not there."
        return _told(replace(before, left={}, waits=()), FollowState.DELETED, "deleted", gone, now)
    answered = replace(before, tips=dict(tips))
    if before.tips == tips:
        kept = before.state in (FollowState.REWRITTEN, FollowState.FOLLOWING) and not before.failures
        return (answered if kept else _as_usual(answered)), ()
    answered = replace(answered, left=dict(tips), waits=())
    if went_on is False:
        words = (
            f"{name} was rewritten (a force-push): it now ends at {tips[ref][:12]}, which does not follow from "
            f"{before.tips[ref][:12]}. {_STAYS}"
        )
        return _told(answered, FollowState.REWRITTEN, "rewritten", words, now)
    return _as_usual(answered), ()


def tags_seen(before: Followed, tips: Mapping[str, str], now: datetime) -> Seen:
    """Return what a look at ``now`` makes of followed tags; of those that are there at the first, the newest counts."""
    if before.seen_at is None:
        return _as_usual(replace(before, tips=dict(tips), left={ref: tips[ref] for ref in in_order(tips)[-1:]})), ()
    if before.tips and not tips:
        # They are kept: what comes back as it was is not new.
        words = f"None of its tags is there any more. {_STAYS}"
        return _told(replace(before, left={}, waits=()), FollowState.DELETED, "deleted", words, now)
    moved = [ref for ref in tips if before.tips.get(ref, tips[ref]) != tips[ref]]
    gone = [ref for ref in before.tips if ref not in tips]
    new = [ref for ref in tips if ref not in before.tips]
    left = {ref: tips[ref] for ref in (*before.left, *moved, *new) if ref in tips}
    waits = () if moved or new or gone else before.waits
    answered = replace(before, tips=dict(tips), left=left, waits=waits)
    events: tuple[Event, ...] = ()
    if gone:
        are = "is" if len(gone) == 1 else "are"
        words = f"{_tags(gone)} {are} not there any more. {_STAYS}"
        answered, event = _told(answered, FollowState.DELETED, "deleted", words, now)
        events += event
    if moved:
        were = "was" if len(moved) == 1 else "were"
        words = f"{_tags(moved)} {were} moved to another commit. {_STAYS}"
        answered, event = _told(answered, FollowState.REWRITTEN, "rewritten", words, now)
        events += event
    if events:
        return answered, events
    told = (FollowState.REWRITTEN, FollowState.DELETED, FollowState.FOLLOWING)
    kept = before.state in told and not before.failures and not new
    return (answered if kept else _as_usual(answered)), ()


def repository_gone(before: Followed, words: str, now: datetime) -> Seen:
    """Return what is known of a repository that its host does not show any more, which it says in ``words``."""
    return _told(replace(before, left={}, waits=()), FollowState.DELETED, "deleted", f"{words} {_STAYS}", now)


def _as_usual(one: Followed) -> Followed:
    return replace(one, state=FollowState.FOLLOWING, reason="")


def _told(one: Followed, state: FollowState, action: str, words: str, now: datetime) -> Seen:
    known = one.state is state and one.reason == words
    after = replace(one, state=state, reason=words)
    if known:
        return after, ()
    return replace(after, told=(Told(now, words), *one.told)[:_MOST_TOLD]), (Event(action, words),)


def _tags(refs: list[str]) -> str:
    return f"The tag{'s' if len(refs) > 1 else ''} {_shown(in_order(refs))}"


def _shown(refs: list[str]) -> str:
    names = [visible(ref.removeprefix(TAGS).removeprefix(HEADS), 60) for ref in refs]
    rest = len(names) - _MOST_NAMED
    return f"{', '.join(names[:_MOST_NAMED])} and {rest} more" if rest > 0 else ", ".join(names)
