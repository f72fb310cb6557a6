"""The table of states: it is closed, it is what the specification says, and only a person takes a person's steps."""

from __future__ import annotations

import pytest

from submissions.states import (
    ACTIVE_STATES,
    FINAL_STATES,
    LIVE_STATES,
    STATES,
    STUCK_STATES,
    STUCK_THRESHOLD,
    Group,
    IllegalTransition,
    State,
    check_transition,
)

GROUPS = {
    Group.ACTIVE: "RECEIVED TIER1_SCANNING TIER2_SCANNING AUTO_APPROVED VENDOR_APPROVED",
    Group.PUBLISHED: "PUBLISHED",
    Group.REJECTED: "REJECTED TIER1_FAILED DEQUEUED",
    Group.HELD: "ON_HOLD RESCAN_REQUIRED",
    Group.BLOCKED: "BLOCKED",
}


def may(current: State, following: State, *, by_operator: bool = False) -> bool:
    try:
        check_transition(current, following, by_operator=by_operator)
    except IllegalTransition:
        return False
    return True


def test_every_state_is_in_the_table_once_and_has_words() -> None:
    assert set(STATES) == set(State)
    assert all(info.state is state and info.label and info.explanation for state, info in STATES.items())
    assert len({info.label for info in STATES.values()}) == len(State)


def test_states_are_in_the_groups_of_the_specification() -> None:
    grouped = {group: {state for state, info in STATES.items() if info.group is group} for group in Group}
    assert grouped == {group: set(names.split()) for group, names in GROUPS.items()}
    assert set(GROUPS[Group.ACTIVE].split()) == ACTIVE_STATES
    assert ACTIVE_STATES | {"ON_HOLD", "RESCAN_REQUIRED"} == LIVE_STATES
    assert ACTIVE_STATES.isdisjoint(FINAL_STATES)


def test_only_what_moves_by_itself_can_be_stuck_for_five_minutes() -> None:
    assert {"RECEIVED", "TIER1_SCANNING", "TIER2_SCANNING", "AUTO_APPROVED"} == STUCK_STATES
    assert STUCK_STATES < ACTIVE_STATES
    assert STUCK_THRESHOLD.total_seconds() == 300


@pytest.mark.parametrize("following", State)
def test_a_published_submission_goes_nowhere(following: State) -> None:
    assert not may(State.PUBLISHED, following, by_operator=True)


def test_publication_comes_from_an_approval_alone() -> None:
    assert {state for state in State if may(state, State.PUBLISHED, by_operator=True)} == {
        "AUTO_APPROVED",
        "VENDOR_APPROVED",
    }


def test_nothing_that_waits_for_a_person_moves_by_itself() -> None:
    for state in (State.ON_HOLD, State.TIER1_FAILED, State.REJECTED, State.DEQUEUED, State.BLOCKED):
        assert [following for following in State if may(state, following)] == []
        assert may(state, State.RECEIVED, by_operator=True)


def test_a_scan_can_be_given_back_and_an_approval_cannot() -> None:
    assert may(State.TIER1_SCANNING, State.RECEIVED)
    assert may(State.TIER2_SCANNING, State.RECEIVED)
    assert not may(State.AUTO_APPROVED, State.RECEIVED, by_operator=True)


def test_a_refused_step_names_the_steps_that_there_are() -> None:
    with pytest.raises(IllegalTransition, match="that is RECEIVED cannot become PUBLISHED; it can become ") as told:
        check_transition(State.RECEIVED, State.PUBLISHED)
    assert "TIER1_SCANNING" in str(told.value)
    assert "DEQUEUED" not in str(told.value)
    with pytest.raises(IllegalTransition, match="can become nothing"):
        check_transition(State.PUBLISHED, State.RECEIVED, by_operator=True)
