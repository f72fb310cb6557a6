"""Template tags and filters of all pages: icons, times, sizes, and a dash for unknown values."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from django import template
from django.conf import settings
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from vskill.templatetags.icons import draw

register = template.Library()

UNKNOWN: Final = "—"

_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_STEPS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
# Where a word of a command may be broken: behind a slash of a path and the equals sign of a variable, and before what
# belongs to a name. A browser would do it behind the hyphens of names and options.
_BREAK: Final = re.compile(r"(?<=[^/:]/)(?=[^/])|(?<=[A-Z]=)|(?=[@#])")
# A secret is one word: its slashes are none of a path.
_SECRET: Final = re.compile(r"[A-Za-z0-9+/=_-]{40,}")
_BADGES: Final = {
    "active": "clock",
    "published": "check",
    "rejected": "cross",
    "held": "pause",
    "blocked": "ban",
}


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """Draw an icon; see ``vskill.templatetags.icons``."""
    return draw(name, label)


@lru_cache(maxsize=256)
def badge(tone: str, icon: str, label: str, large: bool = False) -> SafeString:
    """Draw a badge of ``label`` with an ``icon``, in a ``tone``, or ``large``.

    A list has the same few many times, so they are kept.
    """
    return render_to_string("components/badge.html", {"tone": tone, "icon": icon, "label": label, "large": large})


@register.simple_tag
def state_badge(group: str, label: str, large: bool = False) -> SafeString:
    """Draw a badge for the state of a submission.

    ``group`` selects icon and colour, ``label`` is the text, and ``large`` the size.
    """
    return badge(group if group in _BADGES else "idle", _BADGES.get(group, "question"), label, large)


@register.inclusion_tag("components/copy.html")
def copy_block(identifier: str, text: str, what: str = "command") -> dict[str, str]:
    """Return the context of a block of ``text`` to copy, with a button where scripts run.

    ``identifier`` must be unique in the page; ``what`` names the text for screen readers.
    """
    lines = ((_unbroken(line),) for line in text.splitlines(keepends=True))
    return {"identifier": identifier, "text": format_html_join("", '<span class="line">{}</span>', lines), "what": what}


def _unbroken(line: str) -> SafeString:
    """Return a line of text whose words are broken only where ``_BREAK`` says, unless they are longer than a line."""
    parts: list[tuple[str, str]] = []
    space = ""
    for word in re.split(r"(\s+)", line):
        if word.isspace():
            space = word
            continue
        for part in filter(None, [word] if _SECRET.fullmatch(word) else _BREAK.split(word)):
            parts.append((space, part))
            space = ""
    return format_html("{}{}", format_html_join("", "{}<span>{}</span>", parts), space)


@register.simple_tag
def product_version() -> str:
    """Return the version of the product, empty where the settings have none."""
    return str(getattr(settings, "VSKILL_VERSION", ""))


@register.simple_tag
def source_url() -> str:
    """Return the address where the source of this server is published, empty where its operator has set none."""
    return str(getattr(settings, "VSKILL_SOURCE_URL", ""))


@register.simple_tag(takes_context=True)
def current_if(context: template.Context, prefix: str) -> SafeString | str:
    """Return ``aria-current`` for a link of the navigation where the path of the page starts with ``prefix``."""
    path = getattr(context.get("request"), "path", "")
    return format_html(' aria-current="{}"', "page" if path == prefix else "true") if path.startswith(prefix) else ""


@register.filter
def dash(value: Any) -> Any:
    """Return the value, or a dash where it is ``None`` or empty; 0 stays 0."""
    return UNKNOWN if value is None or value == "" else value


@register.filter
def number(value: int | None) -> str:
    """Return a count with thousands separators, or a dash for ``None``."""
    return UNKNOWN if value is None else f"{value:,}"


@register.filter
def bytesize(value: int | None) -> str:
    """Return a size in bytes as B, KB or MB (of 1,000), or a dash for ``None``."""
    if value is None:
        return UNKNOWN
    if value < 1_000:
        return f"{value} B"
    return f"{value / 1_000:.1f} KB" if value < 1_000_000 else f"{value / 1_000_000:.1f} MB"


@register.filter
def short(value: str | None, length: int = 12) -> str:
    """Return the first ``length`` characters of a hash, or a dash where there is none."""
    return value[:length] if value else UNKNOWN


def as_moment(value: datetime | str | int | float | None) -> datetime | None:
    """Return the moment that a datetime, an ISO text, or seconds since 1970 stand for, or ``None`` for others.

    A moment without a time zone is taken as UTC.
    """
    if isinstance(value, str):
        try:
            value = parse_datetime(value)
        except ValueError:
            return None
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        value = datetime.fromtimestamp(value, UTC)
    if isinstance(value, datetime):
        return value if timezone.is_aware(value) else value.replace(tzinfo=UTC)
    return None


@register.filter
def moment(value: Any) -> SafeString | str:
    """Return the HTML of a moment in full, in UTC, so that it reads the same in every time zone."""
    when = as_moment(value)
    if when is None:
        return UNKNOWN
    when = when.astimezone(UTC)
    return format_html(
        '<time datetime="{}">{}</time>', when.isoformat(timespec="seconds"), f"{when.day} {when:%b %Y, %H:%M} UTC"
    )


@register.filter
def age(value: Any) -> SafeString | str:
    """Return the HTML of how long ago a moment was, with the moment itself in ``title`` and ``datetime``."""
    when = as_moment(value)
    if when is None:
        return UNKNOWN
    when = when.astimezone(UTC)
    gone = timezone.now() - when
    day = f"{when.day} {_MONTHS[when.month - 1]} {when.year}"
    words = day if gone >= timedelta(days=30) else ago(gone)
    # Without format_html, which takes most of the time of a list's page: none of this is a text from outside.
    return mark_safe(  # noqa: S308 - numbers and words of our own
        f'<time datetime="{when.isoformat(timespec="seconds")}" title="{day}, {when:%H:%M:%S} UTC">{words}</time>'
    )


def ago(gone: timedelta) -> str:
    """Return in words, in its largest unit, how long ago something ``gone`` was."""
    seconds = int(gone.total_seconds())
    if seconds < 5:  # Negative where the clocks of two machines differ.
        return "just now"
    for name, size in _STEPS:
        if seconds >= size:
            count = seconds // size
            return f"{count} {name}{'' if count == 1 else 's'} ago"
    return "just now"


@register.filter
def span(value: timedelta | int | float | None) -> str:
    """Return a duration in its two largest units (``2 min 5 s``), or a dash for ``None``; a number is in seconds."""
    if value is None:
        return UNKNOWN
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if seconds < 1:
        return "under 1 s"
    whole = int(seconds)
    parts = []
    for name, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if whole >= size:
            parts.append(f"{whole // size} {name}")
            whole %= size
    return " ".join(parts[:2])
