"""The outbox: what people are told, written in the transaction that causes it.

``submissions.notifications`` tells it afterwards, as often as it takes. Nothing here waits for anybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from marketplace.models import SkillEntry
from marketplace.skill_changes import SkillChange
from marketplace.skills.publishers import publisher_identity
from submissions.notification_models import NotificationEvent
from submissions.states import State
from submissions.submitter import SUBMITTER_NUMBER
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.kv.codec import encode, storable
from vskill.kv.rows import NewRows, insert_rows

_COLUMNS: Final = (
    *("namespace", "kind", "source", "submission_id", "identity", "publisher"),
    *("submitter", "submitter_id", "data"),
)
_LONGEST: Final = 2_000


class Kind(StrEnum):
    """What people are told of: that a skill was published, held, refused or withdrawn, or that its verdict changed."""

    PUBLISHED = "published"
    HELD = "held"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"
    VERDICT_CHANGED = "verdict_changed"


# What a submission that comes into a state is told as.
TOLD: Final = {
    State.PUBLISHED: Kind.PUBLISHED,
    State.ON_HOLD: Kind.HELD,
    State.TIER1_FAILED: Kind.REFUSED,
    State.REJECTED: Kind.REFUSED,
    State.BLOCKED: Kind.REFUSED,
    State.DEQUEUED: Kind.REFUSED,
}
# What the history of a skill calls a withdrawal.
_WITHDRAWALS: Final = frozenset({"yanked", "version quarantined", "quarantined", "deleted"})
_FLAGS: Final = ("flagged: ", "flag cleared: ")
# A later scan that came to another verdict is told by itself, and not by the flag that follows from it.
_OF_SCANS: Final = "rescan"


@dataclass(frozen=True)
class Ended:
    """A submission that has moved: its id, the version that was written, and its value."""

    submission_id: str
    version: int
    value: Mapping[str, Any]


def tell_ended(env: WorkerEnv, moved: Sequence[Ended]) -> None:
    """Write what is told of submissions that were moved, in the transaction that moves them."""
    rows = [_row_of(env, one) for one in moved if one.value["state"] in TOLD]
    if rows:
        insert_rows(env.database, NewRows(NotificationEvent, _COLUMNS, rows))


def _row_of(env: WorkerEnv, one: Ended) -> tuple[str | int | None, ...]:
    value = one.value
    repo_url = _text(value, "repoUrl")
    data = {
        "submissionId": one.submission_id,
        "state": str(value["state"]),
        "reason": _text(value, "reason"),
        "verdict": _text(value, "verdict"),
        "name": _text(value, "skillName"),
        "repoUrl": repo_url,
        "skillPath": _text(value, "skillPath"),
        "commit": _text(value, "commitSha"),
        "slug": _text(value, "slug"),
        "version": _text(value, "version"),
    }
    kind = TOLD[State(value["state"])]
    submitter = _text(value, "submitterAccount", 150)
    return (
        *(env.name, kind.value, f"{one.submission_id}:{one.version}", one.submission_id),
        *(_text(value, "identity", 64), _publisher(repo_url), submitter, account_number(value), encode(data)),
    )


def tell_changed(change: SkillChange, **_signal: Any) -> None:
    """Write that a skill or one of its versions was withdrawn or flagged, in the transaction that does it.

    ``change`` is any event of a skill's history; others are told nothing.
    """
    if change.action in _WITHDRAWALS:
        kind = Kind.WITHDRAWN
    elif change.action.startswith(_FLAGS) and not (change.actor == _OF_SCANS and change.action.endswith(": verdict")):
        kind = Kind.VERDICT_CHANGED
    else:
        return
    more = {"action": change.action, "reason": storable(change.reason)[:_LONGEST]}
    _insert(change.env, kind, change.source, change.skill, change.version, more)


def tell_scanned(
    env: WorkerEnv, skill: SkillEntry, version: str, *, before: str, after: str, reason: str, source: str
) -> None:
    """Write that a later scan of a version came to another verdict, in the transaction that keeps the scan.

    ``before`` and ``after`` are the verdicts, ``reason`` the summary of the new one, and ``source`` names the scan.
    """
    more = {"action": "scanned again", "verdictBefore": before, "verdict": after, "reason": storable(reason)[:_LONGEST]}
    _insert(env, Kind.VERDICT_CHANGED, source, skill, version, more)


def _insert(env: WorkerEnv, kind: Kind, source: str, skill: SkillEntry, version: str, more: Mapping[str, Any]) -> None:
    record = skill.record
    data: Any = {
        "name": record.name[:200],
        "repoUrl": record.repo_url,
        "skillPath": record.skill_path,
        "slug": record.slug,
        "version": version,
        **more,
    }
    NotificationEvent.objects.using(env.database).create(
        namespace=env.name,
        kind=kind,
        source=source,
        identity=skill.identity,
        publisher=_publisher(record.repo_url),
        data=data,
    )


def account_number(value: Mapping[str, Any]) -> int | None:
    """Return the number of the account that submitted what has a value, ``None`` where it is not known."""
    found = value.get(SUBMITTER_NUMBER)
    return found if isinstance(found, int) else None


def _text(value: Mapping[str, Any], name: str, longest: int = _LONGEST) -> str:
    found = value.get(name)
    return storable(found)[:longest] if isinstance(found, str) else ""


def _publisher(repo_url: str) -> str:
    # An owner whose name is no text stays apart from all others, spelled out.
    return visible(publisher_identity(repo_url), 300)
