"""Guessing passwords becomes slow, and nobody is locked out by a stranger."""

from __future__ import annotations

import pytest

from tests.vskill.rate_limits.clock import Clock, stop_the_clock
from vskill.rate_limits.failed_logins import NAMESPACE, Attempt, begin, succeeded
from vskill.rate_limits.models import RequestCount

pytestmark = pytest.mark.django_db

HERE, THERE = "203.0.113.7", "198.51.100.1"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return stop_the_clock(monkeypatch)


def fail(clock: Clock, attempt: Attempt, times: int) -> list[int]:
    """Fail as often, each time as soon as that is allowed; return how long each had to wait."""
    waits = []
    for _ in range(times):
        waits.append(0)
        while seconds := begin(attempt):
            waits[-1] += seconds
            clock.now += seconds
    return waits


def test_after_five_failures_each_wait_is_twice_the_last(clock: Clock) -> None:
    assert fail(clock, Attempt("root", HERE), 10) == [0, 0, 0, 0, 0, 1, 2, 4, 8, 16]


def test_the_wait_ends_at_a_quarter_of_an_hour(clock: Clock) -> None:
    assert fail(clock, Attempt("root", HERE), 17)[-3:] == [512, 900, 900]


def test_in_an_hour_no_account_is_guessed_at_more_than_this(clock: Clock) -> None:
    began, guesses = clock.now, 0
    while clock.now < began + 3600:
        fail(clock, Attempt("root", HERE), 1)
        guesses += 1
    assert guesses <= 20


def test_knocking_while_one_has_to_wait_changes_nothing(clock: Clock) -> None:
    attempt = Attempt("root", HERE)
    fail(clock, attempt, 8)
    before = sorted(RequestCount.objects.values_list("key", "count", "ends_at"))
    assert {begin(attempt) for _ in range(20)} == {8}
    assert sorted(RequestCount.objects.values_list("key", "count", "ends_at")) == before


def test_a_stranger_slows_down_only_himself(clock: Clock) -> None:
    fail(clock, Attempt("root", THERE), 15)
    assert begin(Attempt("root", THERE)) > 0
    assert begin(Attempt("root", HERE)) == 0


def test_strangers_everywhere_make_others_wait_half_a_minute_at_most_and_a_known_browser_never(clock: Clock) -> None:
    for number in range(60):
        fail(clock, Attempt("root", f"198.51.100.{number}"), 1)
    assert begin(Attempt("root", HERE)) == 30
    assert begin(Attempt("root", HERE, known="the mark of a browser")) == 0
    assert begin(Attempt("other", HERE)) == 0


def test_a_stranger_in_the_same_office_does_not_stop_a_known_browser(clock: Clock) -> None:
    fail(clock, Attempt("root", HERE), 12)
    assert begin(Attempt("root", HERE)) > 0
    assert begin(Attempt("root", HERE, known="the mark of a browser")) == 0


def test_a_known_browser_is_slowed_down_as_well(clock: Clock) -> None:
    assert fail(clock, Attempt("root", HERE, known="the mark of a browser"), 8)[-3:] == [1, 2, 4]


def test_one_address_may_not_go_through_all_accounts() -> None:
    for number in range(50):
        assert begin(Attempt(f"account {number}", HERE)) == 0
    assert begin(Attempt("yet another", HERE)) > 0
    assert begin(Attempt("yet another", THERE)) == 0


def test_a_success_forgets_the_failures_of_that_client_at_that_account(clock: Clock) -> None:
    attempt = Attempt("root", HERE)
    fail(clock, attempt, 8)
    succeeded(attempt)
    assert fail(clock, attempt, 6) == [0, 0, 0, 0, 0, 1]


def test_successes_are_no_failures_of_an_office() -> None:
    for number in range(200):
        attempt = Attempt(f"account {number % 40}", HERE)
        assert begin(attempt) == 0
        succeeded(attempt)
    assert set(RequestCount.objects.values_list("count", flat=True)) <= {0}


def test_an_hour_later_everything_is_forgotten(clock: Clock) -> None:
    attempt = Attempt("root", HERE)
    fail(clock, attempt, 9)
    clock.now += 3600
    assert fail(clock, attempt, 5) == [0, 0, 0, 0, 0]


def test_what_was_typed_is_not_stored() -> None:
    begin(Attempt("correct horse battery staple", HERE))
    keys = list(RequestCount.objects.filter(namespace=NAMESPACE).values_list("key", flat=True))
    assert len(keys) == 3
    assert not [key for key in keys if "horse" in key or HERE in key]


@pytest.mark.parametrize("account", ["", "\0", "\ud800", "x" * 10_000])
def test_whatever_is_typed_can_be_counted(account: str) -> None:
    assert begin(Attempt(account, HERE)) == 0
