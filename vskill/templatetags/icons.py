"""The icons of the product: line drawings on a grid of 16, as inline SVG, so that a page needs no request for them."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

_ROUND: Final = '<circle cx="8" cy="8" r="6.25"/>'

DRAWINGS: Final[dict[str, str]] = {
    "alert": '<path d="M8 2 14.5 13.5h-13z"/><path d="M8 6.5v3M8 11.5v.01"/>',
    "arrow": '<path d="M3 8h10M9 4l4 4-4 4"/>',
    "ban": _ROUND + '<path d="m3.6 3.6 8.8 8.8"/>',
    "branch": '<circle cx="4.5" cy="3.5" r="1.5"/><circle cx="4.5" cy="12.5" r="1.5"/>'
    '<circle cx="11.5" cy="5" r="1.5"/>'
    '<path d="M4.5 5v6M11.5 6.5c0 3-7 1.5-7 4.5"/>',
    "check": _ROUND + '<path d="m5.2 8.2 2 2 3.6-4.2"/>',
    "clock": _ROUND + '<path d="M8 4.5V8l2.3 1.6"/>',
    "code": '<path d="M5 4.5 1.75 8 5 11.5M11 4.5 14.25 8 11 11.5M9.2 3 6.8 13"/>',
    "copy": '<rect x="5.5" y="5.5" width="8" height="8" rx="1.5"/>'
    '<path d="M10.5 3.2A1 1 0 0 0 9.5 2.5h-6a1 1 0 0 0-1 1v6c0 .5.3.8.7.9"/>',
    "cross": _ROUND + '<path d="m5.8 5.8 4.4 4.4m0-4.4-4.4 4.4"/>',
    "dot": '<circle cx="8" cy="8" r="2.5" fill="currentColor"/>',
    "download": '<path d="M8 2.5v7.5M4.8 7 8 10.2 11.2 7M2.5 13.5h11"/>',
    "file": '<path d="M9 1.75H4.5a1 1 0 0 0-1 1v10.5a1 1 0 0 0 1 1h7a1 1 0 0 0 1-1V5.25z"/><path d="M9 1.75v3.5h3.5"/>',
    "flag": '<path d="M3.5 14V2.5h8.5l-2 3 2 3H3.5"/>',
    "folder": '<path d="M1.75 4a1 1 0 0 1 1-1h3.5l1.5 1.75h5.5a1 1 0 0 1 1 1V12a1 1 0 0 1-1 1H2.75a1 1 0 0 1-1-1z"/>',
    "globe": _ROUND + '<path d="M1.75 8h12.5M8 1.75c4 4 4 8.5 0 12.5-4-4-4-8.5 0-12.5"/>',
    "hook": '<path d="M8 1.75v8.5a2.6 2.6 0 1 1-5.2 0V9.5M5.5 4.5h5"/>',
    "info": _ROUND + '<path d="M8 7.3v3.6M8 5v.01"/>',
    "key": '<circle cx="5" cy="11" r="2.75"/><path d="m7 9 6.5-6.5M11 5l2 2"/>',
    "link": '<path d="M6.5 9.5a2.5 2.5 0 0 0 3.6 0l2.4-2.4a2.5 2.5 0 0 0-3.6-3.6l-.9.9'
    'M9.5 6.5a2.5 2.5 0 0 0-3.6 0L3.5 8.9a2.5 2.5 0 0 0 3.6 3.6l.9-.9"/>',
    "list": '<path d="M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4v.01M2.5 8v.01M2.5 12v.01"/>',
    "package": '<path d="m8 1.75 5.5 3v6.5l-5.5 3-5.5-3v-6.5zM2.5 4.75 8 7.75l5.5-3M8 7.75v6.5"/>',
    "pause": _ROUND + '<path d="M6.4 5.7v4.6M9.6 5.7v4.6"/>',
    "pencil": '<path d="m2.5 13.5.7-3.2 8-8a1 1 0 0 1 1.4 0l1.1 1.1a1 1 0 0 1 0 1.4l-8 8z"/>',
    "plug": '<path d="M5.5 1.75v3M10.5 1.75v3M3.5 4.75h9v2.5a4.5 4.5 0 0 1-9 0zM8 11.75v2.5"/>',
    "question": _ROUND + '<path d="M6.2 6.3a1.8 1.8 0 1 1 2.6 1.8c-.5.2-.8.5-.8 1.1M8 11.3v.01"/>',
    "search": '<circle cx="7" cy="7" r="4.75"/><path d="m10.5 10.5 3.5 3.5"/>',
    "shield": '<path d="M8 1.75 13 3.5v4c0 3.3-2 5.5-5 6.75C5 13 3 10.8 3 7.5v-4z"/>',
    "tag": '<path d="M2 2.75a.75.75 0 0 1 .75-.75H8l6 6-5.5 6-6.5-6.5z"/><path d="M5 5v.01"/>',
    "terminal": '<rect x="1.75" y="2.75" width="12.5" height="10.5" rx="1.5"/><path d="m4.5 6 2 2-2 2M8.5 10.2h3"/>',
    "user": '<circle cx="8" cy="5" r="2.75"/><path d="M2.75 14c.4-3 2.4-4.5 5.25-4.5s4.85 1.5 5.25 4.5"/>',
}


@lru_cache(maxsize=512)
def draw(name: str, label: str = "") -> SafeString:
    """Return the icon ``name`` as inline SVG.

    ``label`` is its text for screen readers, which skip an icon without one. Raises ``KeyError`` for an unknown name,
    which is a mistake in the calling template.
    """
    shape = mark_safe(DRAWINGS[name])  # noqa: S308 - constants of this module, never input
    said = format_html('role="img" aria-label="{}"', label) if label else mark_safe('aria-hidden="true"')
    return format_html(
        '<svg class="icon" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.4"'
        ' stroke-linecap="round" stroke-linejoin="round" focusable="false" {}>{}</svg>',
        said,
        shape,
    )
