"""Drawings of numbers have known sizes: of one, of none, of huge ones, and of those that nobody knows."""

from __future__ import annotations

import re
from datetime import date

import pytest

from marketplace.capabilities import NOT_KNOWN, Capabilities
from marketplace.pictures.columns import Column, nice_top, picture_of
from marketplace.pictures.reach import draw_reach, reach_of
from marketplace.pictures.weeks import by_weeks


@pytest.mark.parametrize(
    ("highest", "top"), [(0, 1), (1, 1), (3, 5), (5, 5), (11, 20), (99, 100), (10**18 + 1, 2 * 10**18)]
)
def test_a_scale_ends_at_the_next_round_number(highest: int, top: int) -> None:
    assert nice_top(highest) == top


def test_columns_are_as_high_as_their_share_of_the_scale_and_unknown_ones_are_gaps() -> None:
    values = (None, 0, 40, 100, 1)
    picture = picture_of("Downloads", tuple(Column(f"week {n}", one) for n, one in enumerate(values)), "downloads")
    assert picture is not None
    assert re.findall(r'<rect class="(\w+)" x="(\d+)" y="\d+" width="8" height="(\d+)"', picture.svg) == [
        ("none", "10", "1"),
        ("full", "20", "40"),
        ("full", "30", "100"),
        ("full", "40", "2"),
    ]
    assert picture.svg.count('class="gap"') == 1
    assert "week 0: not known" in picture.svg
    assert picture.gaps
    assert picture.summary.endswith("the most were 100. Of 1 nothing is known.")


def test_one_huge_number_fills_its_column_and_none_or_only_unknown_ones_draw_nothing() -> None:
    picture = picture_of("Downloads", (Column("week <1>", 5 * 10**15, so_far=True),), "downloads")
    assert picture is not None
    assert 'viewBox="0 0 8 100"' in picture.svg
    assert 'class="so-far" x="0" y="0" width="8" height="100"' in picture.svg
    assert "week &lt;1&gt;: 5,000,000,000,000,000 so far" in picture.svg
    assert picture_of("Downloads", (), "downloads") is None
    assert picture_of("Downloads", (Column("week", None),), "downloads") is None


def test_weeks_begin_on_monday_and_are_unknown_before_anything_was_recorded() -> None:
    days = {date(2026, 11, 22): 3, date(2026, 11, 23): 4, date(2026, 11, 29): 5}
    columns = by_weeks(days, date(2026, 11, 12), date(2026, 11, 29), weeks=4)
    assert [(one.label, one.value, one.so_far) for one in columns] == [
        ("week from 2 Nov 2026", None, False),
        ("week from 9 Nov 2026", 0, False),
        ("week from 16 Nov 2026", 3, False),
        ("week from 23 Nov 2026", 9, True),
    ]


def test_a_map_of_what_a_skill_touches_tells_what_was_not_seen_from_what_nobody_knows() -> None:
    seen = draw_reach(reach_of(Capabilities(("sends", "reads_secrets", "unheard-of"))))
    for words in ("Files: nothing seen", "Network: touches it", "Secrets: touches it", "Commands: nothing seen"):
        assert f">{words}<" in seen
    assert seen.count("<path") == 2
    unknown = draw_reach(reach_of(NOT_KNOWN))
    assert unknown.count('<path class="unknown"') == unknown.count(": not known<") == 5
    assert "nothing seen" not in unknown
    in_part = draw_reach(reach_of(Capabilities(("sends",), unread=True)))
    assert ("Network: touches it" in in_part, in_part.count(": not known<")) == (True, 4)
