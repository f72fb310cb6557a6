"""What reads of submissions return: a submission, a stuck one, and the report of a search for stuck ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeGuard

from submissions.models import SUBMISSION_PREFIX
from submissions.states import State
from vskill.errors import VskillError
from vskill.kv.clock import isoformat, parse_isoformat
from vskill.kv.outcomes import Outcome, ReadCounts, Status

_STATES: Final = frozenset(State)


class SubmissionNotFound(VskillError):
    """There is no submission of that id in this environment."""

    code = "submission_not_found"


@dataclass(frozen=True)
class Submission:
    """A submission as it was read: its value, and the version that a write must name."""

    id: str
    version: int
    value: Mapping[str, Any]

    @property
    def state(self) -> State:
        """Return the state it was read in."""
        return State(self.value["state"])

    def text(self, name: str) -> str:
        """Return a text of the value, empty where there is none."""
        found = self.value.get(name)
        return found if isinstance(found, str) else ""


# Not frozen: freezing costs more than the rest of the constructor, and a search may make thousands.
@dataclass(slots=True)
class StuckSubmission:
    """A submission that has not moved for longer than the threshold.

    ``updated_at`` is when it last moved, ``stuck_for`` how long ago that was by the database's clock, and ``version``
    the one that a write must name.
    """

    id: str
    state: State
    repo_url: str
    skill_name: str
    skill_path: str
    updated_at: datetime
    stuck_for: timedelta
    version: int

    def as_json(self) -> dict[str, Any]:
        """Return what commands and APIs report of it."""
        return {
            "id": self.id,
            "state": self.state,
            "repoUrl": self.repo_url,
            "skillName": self.skill_name,
            "skillPath": self.skill_path,
            "updatedAt": isoformat(self.updated_at),
            "stuckForMs": self.stuck_for // timedelta(milliseconds=1),
        }


@dataclass(frozen=True)
class StuckReport:
    """The stuck submissions, longest first, how every read of the search ended, and the keys of unreadable entries.

    ``on_its_way`` is how many more have not moved for as long and merely wait for a turn or are being worked on; where
    they were not to be left out, it is 0.
    """

    stuck: tuple[StuckSubmission, ...]
    counts: ReadCounts
    unreadable: tuple[str, ...] = ()
    on_its_way: int = 0


def no_such_submission(submission_id: str) -> SubmissionNotFound:
    """Return the error for an id that does not exist."""
    return SubmissionNotFound(f"There is no submission {submission_id[:100]!r} here.")


def is_submission(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether a value is that of a submission: an object with a known state."""
    # A state that is an object or a list is not hashable, so it cannot even be looked up.
    return isinstance(value, dict) and isinstance(state := value.get("state"), str) and state in _STATES


def submission_of(outcome: Outcome) -> Submission:
    """Return the submission that was read.

    Raises ``SubmissionNotFound`` where there is no entry or its value is no submission, and ``EntryUnavailable`` where
    the entry could not be read.
    """
    submission_id = outcome.key.removeprefix(SUBMISSION_PREFIX)
    if outcome.absent:
        raise no_such_submission(submission_id)
    malformed = outcome.status is Status.MALFORMED
    value = None if malformed else outcome.require()
    if not is_submission(value):
        raise SubmissionNotFound(
            f"The entry of submission {submission_id!r} is not a submission. It was left as it is; "
            "the admin shows it under submissions."
        )
    return Submission(submission_id, outcome.version, value)


def stuck_of(
    outcome: Outcome, now: datetime, older_than: timedelta, states: frozenset[State]
) -> StuckSubmission | None:
    """Return the submission if it is stuck, else ``None``; raise ``ValueError`` for a value that is no submission.

    It is stuck when its state is one of ``states`` and it last moved ``older_than`` or longer before ``now``.
    """
    value = outcome.value
    if not is_submission(value):
        raise ValueError("no submission")
    state = value["state"]
    if state not in states:
        return None
    updated_at = parse_isoformat(value.get("updatedAt"))
    if updated_at is None:
        raise ValueError("no time")
    stuck_for = now - updated_at
    if stuck_for < older_than:
        return None
    return StuckSubmission(
        id=outcome.key.removeprefix(SUBMISSION_PREFIX),
        state=State(state),
        repo_url=str(value.get("repoUrl", "")),
        skill_name=str(value.get("skillName", "")),
        skill_path=str(value.get("skillPath", "")),
        updated_at=updated_at,
        stuck_for=stuck_for,
        version=outcome.version,
    )
