"""Shares, their intervals and percentiles."""

from __future__ import annotations

import pytest

from submissions.evaluation.statistics import Share, percentile


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [
        # From Newcombe (1998), table I, method 3, and by hand for the edges.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),
    ],
)
def test_the_interval_is_that_of_wilson(hits: int, of: int, low: float, high: float) -> None:
    assert list(Share(hits, of).interval or ()) == pytest.approx([low, high], abs=5e-5)


def test_nothing_has_no_rate() -> None:
    assert (Share(0, 0).rate, Share(0, 0).interval, str(Share(0, 0))) == (None, None, "-")
    assert Share(0, 0).as_json() == {"hits": 0, "of": 0, "rate": None, "low": None, "high": None}


def test_a_share_reads_with_its_interval_and_its_counts() -> None:
    assert str(Share(81, 263)) == "0.308 [0.255-0.366] 81/263"
    assert Share(81, 263).as_json() == {"hits": 81, "of": 263, "rate": 0.308, "low": 0.2553, "high": 0.3662}


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [5.0, 1.0, 3.0, 2.0, 4.0]
    assert [percentile(values, one) for one in (1, 20, 21, 50, 95, 100)] == [1.0, 1.0, 2.0, 3.0, 5.0, 5.0]
    assert percentile([], 50) is None
