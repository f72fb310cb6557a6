"""Draw numbers over time as columns. A number that nobody knows is a gap with a dashed line, and never a zero."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

HEIGHT: Final = 100.0
# Of one column with the space beside it, and of that space, in units of the drawing, which is stretched to its place.
STEP: Final = 10.0
_SPACE: Final = 2.0
# What is more than nothing is seen, however small it is beside the highest.
_LEAST: Final = 2.0


@dataclass(frozen=True)
class Column:
    """One number: ``label`` says of when it is; ``value`` is ``None`` where it is not known.

    ``so_far`` says that its time has not ended yet.
    """

    label: str
    value: int | None
    so_far: bool = False


@dataclass(frozen=True)
class Picture:
    """A drawing and what stands beside it.

    ``title`` says what is shown and of when, ``highest`` is the number that a full column stands for, and ``gaps`` says
    that some numbers are not known.
    """

    title: str
    svg: SafeString
    columns: tuple[Column, ...]
    highest: int
    gaps: bool
    summary: str

    @property
    def newest_first(self) -> tuple[Column, ...]:
        """Return the columns in the order of the table."""
        return self.columns[::-1]


def nice_top(highest: int) -> int:
    """Return the end of the scale for a highest value: 1, 2 or 5 times a power of ten, at least 1."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power >= highest:
                return factor * power
        power *= 10


@lru_cache(maxsize=128)
def picture_of(title: str, columns: tuple[Column, ...], unit: str) -> Picture | None:
    """Return the drawing of ``columns``, or ``None`` where no number is known.

    ``unit`` is what is counted, in the plural. The last drawings are kept: those of the home page change seldom.
    """
    known = [one.value for one in columns if one.value is not None]
    if not known:
        return None
    top = nice_top(max(known))
    gaps = len(known) < len(columns)
    first, last = columns[0].label, columns[-1].label
    summary = f"{title}. {sum(known):,} {unit} from the {first} to the {last}; the most were {max(known):,}."
    if gaps:
        summary += f" Of {len(columns) - len(known)} nothing is known."
    marks = format_html_join("", "{}", ((_mark(number, one, top),) for number, one in enumerate(columns)))
    width = STEP * len(columns) - _SPACE
    svg = format_html(
        '<svg class="columns" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>',
        f"{width:g}",
        f"{HEIGHT:g}",
        summary,
        marks,
    )
    return Picture(title, svg, columns, top, gaps, summary)


def _mark(number: int, column: Column, top: int) -> SafeString:
    left, width = STEP * number, STEP - _SPACE
    if column.value is None:
        return format_html(
            '<line class="gap" x1="{}" y1="{}" x2="{}" y2="{}"><title>{}: not known</title></line>',
            f"{left:g}",
            f"{HEIGHT - 1:g}",
            f"{left + width:g}",
            f"{HEIGHT - 1:g}",
            column.label,
        )
    height = max(_LEAST, HEIGHT * column.value / top) if column.value else 1.0
    kind = "none" if not column.value else "so-far" if column.so_far else "full"
    return format_html(
        '<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}: {}{}</title></rect>',
        kind,
        f"{left:g}",
        f"{HEIGHT - height:g}",
        f"{width:g}",
        f"{height:g}",
        column.label,
        f"{column.value:,}",
        " so far" if column.so_far else "",
    )
