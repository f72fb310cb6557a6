"""Every route of the URL configuration, as a template with a place for each part that a visitor chooses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from django.urls import URLPattern, URLResolver, get_resolver

_CONVERTER: Final = re.compile(r"<(?:\w+:)?\w+>")
# Django's admin ends with patterns for its apps, and for every other address below it.
_ANYTHING: Final = re.compile(r"\(\?P<\w+>[^)]*\)")
PLACE: Final = "{}"


def every_route() -> list[str]:
    """Return each route, such as ``/skills/{}/files/{}``, in the order of the URL configuration."""
    return list(dict.fromkeys(_below("/", get_resolver().url_patterns)))


def _below(start: str, patterns: list[URLPattern | URLResolver]) -> Iterator[str]:
    for pattern in patterns:
        # Regular expressions first: the name of a group looks like a converter.
        written = _ANYTHING.sub(PLACE, str(pattern.pattern)).removeprefix("^").removesuffix("$")
        route = start + _CONVERTER.sub(PLACE, written)
        if isinstance(pattern, URLResolver):
            yield from _below(route, pattern.url_patterns)
        else:
            yield route
