"""Version numbers: the order of semver.org, and which number a publication gets."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketplace.skills.versions import choose_version, highest, is_aside, parse_version

IN_ORDER = (
    *("0.0.1", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11"),
    *("1.0.0-rc.1", "1.0.0", "1.0.2", "1.0.10", "1.2.0", "2.0.0"),
)


@pytest.mark.parametrize(("lower", "higher"), [*itertools.pairwise(IN_ORDER)])
def test_the_order_is_that_of_semver(lower: str, higher: str) -> None:
    first, second = parse_version(lower), parse_version(higher)
    assert first is not None
    assert second is not None
    assert first < second


@pytest.mark.parametrize(
    ("text", "meaning"),
    [("v1", "1.0.0"), (" 1.2 ", "1.2.0"), ("1.2.3+build.5", "1.2.3"), ("01.2.3", "1.2.3"), ("1.0.0-RC", "1.0.0-RC")],
)
def test_what_authors_write_is_understood(text: str, meaning: str) -> None:
    assert str(parse_version(text)) == meaning


@pytest.mark.parametrize(
    "text", ["", "latest", "1.2.3.4", "1..2", "-1", "1.0.0-", "１.0.0", "1" * 20, "1.0.0-" + "a." * 9]
)
def test_what_is_no_version_is_none(text: str) -> None:
    assert parse_version(text) is None


def test_the_highest_is_by_number_and_not_by_text() -> None:
    assert highest(["0.0.9", "0.0.10", "0.0.2"]) == "0.0.10"
    assert highest([]) is None


@given(st.lists(st.sampled_from(["", "1.0.0", "1.0", "v2", "0.0.1", "1.0.0-rc.1", "nonsense"]), max_size=12))
def test_no_number_is_ever_given_twice(declared: list[str]) -> None:
    taken: list[str] = []
    for text in declared:
        taken.append(choose_version(text, taken))
    assert len(set(map(parse_version, taken))) == len(taken)


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("declared", "taken", "given_number"),
    [
        pytest.param("", [], "0.0.1", id="the first one"),
        pytest.param("", ["2.0.0"], "0.0.0-g0123456789ab", id="without a number"),
        pytest.param("2.0.0", ["2.0.0"], "0.0.0-g0123456789ab", id="with the number of the highest"),
        pytest.param("2.0.0", ["2.0.0", "0.0.0-g0123456789ab"], "0.0.0-g0123456789ab.2", id="the same commit again"),
        pytest.param("1.0.0", ["1.0.0", "2.0.0"], "1.0.1", id="with the number of one below"),
        pytest.param("3.0.0", ["2.0.0"], "3.0.0", id="with a number of its own"),
    ],
)
def test_a_commit_of_unknown_age_never_gets_the_highest_number_by_itself(
    declared: str, taken: list[str], given_number: str
) -> None:
    assert choose_version(declared, taken, aside=COMMIT) == given_number
    assert is_aside(given_number) == given_number.startswith("0.0.0-g")


@given(st.lists(st.sampled_from(["", "1.0.0", "2.0.0", "0.0.1"]), max_size=8))
def test_no_number_is_given_twice_to_commits_of_unknown_age(declared: list[str]) -> None:
    taken: list[str] = []
    for text in declared:
        taken.append(choose_version(text, taken, aside=COMMIT))
    assert len(set(map(parse_version, taken))) == len(taken)
