"""Draw a report as SVG: for each group how much of it is held, as a bar with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape

from submissions.evaluation.labels import Label
from submissions.evaluation.report import Section, judges
from submissions.evaluation.statistics import Share
from vskill.hidden_characters import visible

_WIDTH: Final = 900
_LEFT: Final = 300
_BAR: Final = 440
_ROW: Final = 22
_COLOURS: Final = {Label.MALICIOUS: "#b3261e", Label.BENIGN: "#1f5fa8"}
_STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#1c1b1f}.h{font-weight:600}.n{fill:#5f5c66}"
    "svg{background:#fff}line{stroke:#1c1b1f;stroke-width:1.5}"
)


def chart(shown: Sequence[Section], engines: Sequence[str]) -> str:
    """Return an SVG document; it is complete in itself, and every name in it is escaped."""
    rows: list[tuple[str, Share | None, str]] = []
    for section in shown:
        rows += _rows(section, judges(engines))
    height = _ROW * (len(rows) + 1)
    body = "".join(_row(number, *row) for number, row in enumerate(rows))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        f'role="img"><title>Held or refused, with intervals of 95 %</title><style>{_STYLE}</style>{body}</svg>\n'
    )


def _rows(section: Section, names: Sequence[str]) -> Iterator[tuple[str, Share | None, str]]:
    for label, colour in _COLOURS.items():
        yield f"{section.name}: {label}, held or refused", None, ""
        for name in names:
            yield name, section.tally(name, label).stopped, colour
        for by in ("source", "kind"):
            yield f"{label} by {by} ({names[-1]})", None, ""
            for group in section.groups(by):
                share = section.within(by, group).tally(names[-1], label).stopped
                if share.of:
                    yield group, share, colour


def _row(number: int, name: str, share: Share | None, colour: str) -> str:
    top = number * _ROW
    text = escape(visible(name, 60))
    if share is None:
        return f'<text class="h" x="8" y="{top + 16}">{text}</text>'
    line = f'<text x="{_LEFT - 8}" y="{top + 16}" text-anchor="end">{text}</text>'
    if share.rate is None or share.interval is None:
        return line + f'<text class="n" x="{_LEFT}" y="{top + 16}">no samples</text>'
    low, high = share.interval
    middle = top + _ROW // 2
    return (
        line
        + f'<rect x="{_LEFT}" y="{top + 4}" width="{share.rate * _BAR:.1f}" height="14" fill="{colour}"/>'
        + f'<line x1="{_LEFT + low * _BAR:.1f}" y1="{middle}" x2="{_LEFT + high * _BAR:.1f}" y2="{middle}"/>'
        + f'<text class="n" x="{_LEFT + _BAR + 8}" y="{top + 16}">{share.rate:.2f} of {share.of}</text>'
    )
