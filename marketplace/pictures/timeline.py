"""Draw what happened when: marks on a line from the first moment to now, a line for each who did something.

What a mark says is in its shape, so that it needs no colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

WIDTH: Final = 320.0
_EDGE: Final = 8.0
_ROW: Final = 36
_LINE: Final = 24
# Between two marks that would lie on one another; marks of one moment stand side by side.
_APART: Final = 11.0
_RADIUS: Final = 5.0
MOST_MARKS: Final = 26

CIRCLE: Final = "circle"
TRIANGLE: Final = "triangle"
SQUARE: Final = "square"
_SHAPES: Final = {
    CIRCLE: "M{l} {m}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z",
    TRIANGLE: "M{x} {t}L{r} {b}L{l} {b}Z",
    SQUARE: "M{l} {t}H{r}V{b}H{l}Z",
}


@dataclass(frozen=True)
class Mark:
    """One thing that happened ``at`` a time, or last then; ``words`` say what, and ``shape`` how it is drawn."""

    at: datetime
    shape: str
    words: str


@dataclass(frozen=True)
class Lane:
    """What one did: its name and its marks, the oldest first."""

    name: str
    marks: Sequence[Mark]


def draw_timeline(lanes: Iterable[Lane], start: datetime, end: datetime, summary: str) -> SafeString:
    """Return lanes of marks as SVG; of a lane with more than ``MOST_MARKS`` marks the newest are drawn.

    ``summary`` says in words what is drawn. What is before ``start`` is drawn there, and what is after ``end`` at that.
    """
    listed = list(lanes)
    rows = format_html_join("", "{}", ((_lane(number, one, start, end),) for number, one in enumerate(listed)))
    return format_html(
        '<svg class="timeline-picture" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>',
        f"{WIDTH:g}",
        _ROW * len(listed),
        summary,
        rows,
    )


def places(moments: Sequence[datetime], start: datetime, end: datetime) -> list[float]:
    """Return where on the line moments are, in their order, none nearer to the next than a mark is wide."""
    length, room = (end - start).total_seconds(), WIDTH - 2 * _EDGE
    found: list[float] = []
    for one in moments:
        share = (one - start).total_seconds() / length if length > 0 else 0.0
        place = _EDGE + room * min(1.0, max(0.0, share))
        found.append(max(place, found[-1] + _APART) if found else place)
    last = WIDTH - _EDGE
    for number in range(len(found) - 1, -1, -1):
        found[number] = min(found[number], last)
        last = found[number] - _APART
    return found


def _lane(number: int, lane: Lane, start: datetime, end: datetime) -> SafeString:
    top, marks = _ROW * number, lane.marks[-MOST_MARKS:]
    drawn = zip(places([one.at for one in marks], start, end), marks, strict=True)
    return format_html(
        '<text x="0" y="{}">{}</text><line x1="0" y1="{}" x2="{}" y2="{}"/>{}',
        top + 12,
        lane.name,
        top + _LINE,
        f"{WIDTH:g}",
        top + _LINE,
        format_html_join("", "{}", ((_mark(place, top + _LINE, one),) for place, one in drawn)),
    )


def _mark(place: float, middle: float, mark: Mark) -> SafeString:
    edges = {"x": place, "m": middle, "l": place - _RADIUS, "r": place + _RADIUS}
    edges |= {"t": middle - _RADIUS, "b": middle + _RADIUS}
    outline = _SHAPES[mark.shape].format(**{name: f"{value:g}" for name, value in edges.items()})
    return format_html('<path class="{}" d="{}"><title>{}</title></path>', mark.shape, outline, mark.words)
