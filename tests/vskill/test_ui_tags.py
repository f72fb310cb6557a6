"""The words that every page shares: what is not known is a dash, and a moment says which one it is."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.template import Context, Template

from tests.page_text import without_inline_tags
from vskill.templatetags import ui
from vskill.templatetags.icons import draw


@pytest.mark.parametrize("show", [ui.dash, ui.number, ui.bytesize, ui.short, ui.moment, ui.age, ui.span])
def test_what_is_not_known_is_a_dash(show: object) -> None:
    assert callable(show)
    assert show(None) == "—"


def test_zero_is_shown_as_zero() -> None:
    assert (ui.dash(0), ui.number(0), ui.bytesize(0)) == (0, "0", "0 B")


@pytest.mark.parametrize(
    ("size", "words"), [(999, "999 B"), (1_000, "1.0 KB"), (48_213, "48.2 KB"), (10_000_000, "10.0 MB")]
)
def test_sizes_are_in_thousands(size: int, words: str) -> None:
    assert ui.bytesize(size) == words


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        (timedelta(seconds=-40), "just now"),
        (timedelta(seconds=4), "just now"),
        (timedelta(seconds=59), "59 seconds ago"),
        (timedelta(minutes=1), "1 minute ago"),
        (timedelta(hours=23, minutes=59), "23 hours ago"),
        (timedelta(days=2, hours=5), "2 days ago"),
    ],
)
def test_an_age_is_told_in_its_largest_unit_and_never_lies_ahead(gone: timedelta, words: str) -> None:
    assert ui.ago(gone) == words


def test_a_moment_is_shown_in_utc_whatever_zone_it_came_in() -> None:
    abroad = datetime(2026, 3, 1, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert "2 Mar 2026, 04:30 UTC" in ui.moment(abroad)
    assert 'datetime="2026-03-02T04:30:00+00:00"' in ui.moment(abroad)


@pytest.mark.parametrize("value", ["2026-03-02T04:30:00Z", 1_772_425_800, datetime(2026, 3, 2, 4, 30)])  # noqa: DTZ001 - SQLite's answer
def test_a_moment_is_read_from_text_seconds_and_naive_values(value: object) -> None:
    assert ui.as_moment(value) == datetime(2026, 3, 2, 4, 30, tzinfo=UTC)  # type: ignore[arg-type]  # every accepted kind


@pytest.mark.parametrize("value", ["", "yesterday", "2026-13-45T99:00:00Z", True])
def test_what_is_no_moment_is_a_dash(value: object) -> None:
    assert ui.age(value) == "—"


@pytest.mark.parametrize(
    ("value", "words"), [(0.2, "under 1 s"), (65, "1 min 5 s"), (timedelta(hours=25, minutes=3, seconds=9), "1 d 1 h")]
)
def test_a_duration_is_told_in_its_two_largest_units(value: float | timedelta, words: str) -> None:
    assert ui.span(value) == words


def test_an_icon_is_decoration_unless_it_is_named() -> None:
    assert 'aria-hidden="true"' in draw("check")
    assert 'role="img" aria-label="&lt;Done&gt;"' in draw("check", "<Done>")


def test_a_badge_always_has_words_and_escapes_them() -> None:
    shown = Template("{% load ui %}{% state_badge group label %}").render(
        Context({"group": "held", "label": "<b>Held"})
    )
    assert "&lt;b&gt;Held" in shown
    assert "<svg" in shown
    assert "tone-held" in shown


def test_an_unknown_group_gets_no_colour_of_another() -> None:
    assert "tone-idle" in Template("{% load ui %}{% state_badge 'x' 'Odd' %}").render(Context({}))


def test_text_to_copy_is_escaped_and_its_button_waits_for_a_script() -> None:
    shown = Template("{% load ui %}{% copy_block 'one' text %}").render(Context({"text": "curl '<x>' && rm"}))
    assert "<x>" not in shown
    assert "curl '<x>' && rm" in without_inline_tags(shown)
    assert 'data-copy="one" hidden' in shown


def test_a_line_to_copy_is_broken_within_no_name_and_no_option() -> None:
    text = "export REGISTRY=http://127.0.0.1:8000/a\nnpx x add http://127.0.0.1:8000/git/a/b-c.git b-c@d-e --in-all"
    shown = Template("{% load ui %}{% copy_block 'one' text %}").render(Context({"text": text}))
    assert text in without_inline_tags(shown)
    assert [
        re.findall("<span>([^<]+)</span>", line)
        for line in shown.partition("</pre>")[0].split('<span class="line">')[1:]
    ] == [
        ["export", "REGISTRY=", "http://127.0.0.1:8000/", "a"],
        ["npx", "x", "add", "http://127.0.0.1:8000/", "git/", "a/", "b-c.git", "b-c", "@d-e", "--in-all"],
    ]


def test_a_secret_to_copy_is_one_word() -> None:
    secret = f"whsec_{'aB3/' * 10}=="
    shown = Template("{% load ui %}{% copy_block 'one' text %}").render(Context({"text": secret}))
    assert f"<span>{secret}</span>" in shown
