"""The states of a submission: the one table that pages, API, admin, pipeline and recovery use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from vskill.errors import VskillError


class State(StrEnum):
    """The state of a submission."""

    RECEIVED = "RECEIVED"
    TIER1_SCANNING = "TIER1_SCANNING"
    TIER2_SCANNING = "TIER2_SCANNING"
    AUTO_APPROVED = "AUTO_APPROVED"
    VENDOR_APPROVED = "VENDOR_APPROVED"
    ON_HOLD = "ON_HOLD"
    RESCAN_REQUIRED = "RESCAN_REQUIRED"
    TIER1_FAILED = "TIER1_FAILED"
    REJECTED = "REJECTED"
    DEQUEUED = "DEQUEUED"
    BLOCKED = "BLOCKED"
    PUBLISHED = "PUBLISHED"


class Group(StrEnum):
    """What a state means to somebody who is waiting for the submission."""

    ACTIVE = "active"
    PUBLISHED = "published"
    REJECTED = "rejected"
    HELD = "held"
    BLOCKED = "blocked"


class IllegalTransition(VskillError):
    """A submission cannot go from its present state to the requested one; nothing was changed."""

    code = "illegal_transition"


@dataclass(frozen=True)
class StateInfo:
    """How a state is described, and which states may follow it.

    ``label`` and ``explanation`` are shown to the submitter. ``following`` are the states that the pipeline may choose,
    ``by_operator`` those that only a person may.
    """

    state: State
    group: Group
    label: str
    explanation: str
    following: frozenset[State]
    by_operator: frozenset[State] = frozenset()


def _info(
    state: State, group: Group, label: str, explanation: str, following: str = "", by_operator: str = ""
) -> tuple[State, StateInfo]:
    return state, StateInfo(
        state,
        group,
        label,
        explanation,
        frozenset(State(name) for name in following.split()),
        frozenset(State(name) for name in by_operator.split()),
    )


STATES: Final[dict[State, StateInfo]] = dict(
    [
        _info(
            State.RECEIVED,
            Group.ACTIVE,
            "Waiting",
            "Accepted and in the queue; verification has not begun.",
            "TIER1_SCANNING VENDOR_APPROVED BLOCKED ON_HOLD",
            "DEQUEUED",
        ),
        _info(
            State.TIER1_SCANNING,
            Group.ACTIVE,
            "Being checked",
            "The repository is being fetched and checked by rules.",
            "TIER2_SCANNING AUTO_APPROVED VENDOR_APPROVED TIER1_FAILED REJECTED ON_HOLD RECEIVED BLOCKED",
        ),
        _info(
            State.TIER2_SCANNING,
            Group.ACTIVE,
            "Being checked further",
            "The first checks are done; a second engine is reading the skill.",
            "AUTO_APPROVED VENDOR_APPROVED TIER1_FAILED REJECTED ON_HOLD RECEIVED BLOCKED",
        ),
        _info(
            State.AUTO_APPROVED,
            Group.ACTIVE,
            "Approved, being published",
            "Every check that was due has passed; the skill is about to be published.",
            "PUBLISHED ON_HOLD RESCAN_REQUIRED",
        ),
        _info(
            State.VENDOR_APPROVED,
            Group.ACTIVE,
            "Approved for its owner, being published",
            "It comes from a trusted owner, so that it is not held; the skill is about to be published.",
            "PUBLISHED RESCAN_REQUIRED ON_HOLD",
        ),
        _info(
            State.ON_HOLD,
            Group.HELD,
            "Held for review",
            "A person must look at it before it can be published. This is no accusation.",
            "",
            "AUTO_APPROVED REJECTED RECEIVED BLOCKED",
        ),
        _info(
            State.RESCAN_REQUIRED,
            Group.HELD,
            "Must be checked again",
            "The content changed between the check and publication, so the earlier results do not count.",
            "RECEIVED ON_HOLD",
        ),
        _info(
            State.TIER1_FAILED,
            Group.REJECTED,
            "Needs changes",
            "The skill does not meet the format; the reasons say what to change. Submit it again when it is mended.",
            "",
            "RECEIVED",
        ),
        _info(
            State.REJECTED,
            Group.REJECTED,
            "Refused",
            "The skill was refused for the reasons given. Submit it again when they no longer hold.",
            "",
            "RECEIVED ON_HOLD",
        ),
        _info(State.DEQUEUED, Group.REJECTED, "Taken out", "An operator took it out of the queue.", "", "RECEIVED"),
        _info(
            State.BLOCKED,
            Group.BLOCKED,
            "Blocked",
            "Its source or its content is on the block list of this registry.",
            "",
            "RECEIVED",
        ),
        _info(State.PUBLISHED, Group.PUBLISHED, "Published", "The skill is in the marketplace."),
    ]
)

ACTIVE_STATES: Final = frozenset(state for state, info in STATES.items() if info.group is Group.ACTIVE)
# At most one submission of a skill is in one of these states: it is on its way, or waits for a person.
LIVE_STATES: Final = frozenset(state for state, info in STATES.items() if info.group in (Group.ACTIVE, Group.HELD))
FINAL_STATES: Final = frozenset(State) - ACTIVE_STATES - {State.RESCAN_REQUIRED}
STUCK_STATES: Final = frozenset({State.RECEIVED, State.TIER1_SCANNING, State.TIER2_SCANNING, State.AUTO_APPROVED})
# Besides the stuck states, those that wait for a next step of the pipeline, which only a message can bring.
SWEPT_STATES: Final = STUCK_STATES | {State.VENDOR_APPROVED, State.RESCAN_REQUIRED}
STUCK_THRESHOLD: Final = timedelta(minutes=5)


def check_transition(current: State, following: State, *, by_operator: bool = False) -> None:
    """Raise ``IllegalTransition`` unless ``current`` may lead to ``following``.

    With ``by_operator`` the transitions of an operator are allowed besides those of the pipeline.
    """
    info = STATES[current]
    if following in info.following or (by_operator and following in info.by_operator):
        return
    allowed = sorted(info.following | (info.by_operator if by_operator else frozenset()))
    possible = ", ".join(allowed) if allowed else "nothing"
    raise IllegalTransition(
        f"A submission that is {current} cannot become {following}; it can become {possible}. It was left as it is."
    )
