"""The answer 404 that names what is near to what was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.http import Http404


class Near(NamedTuple):
    """Something that is there and has a similar name: what it is called, and the path of its page."""

    name: str
    href: str


class NotThere(Http404):
    """Nothing has the address that was asked for; the page of the error leads to ``near``."""

    def __init__(self, message: str, near: Sequence[Near] = ()) -> None:
        """Keep what is near beside the message."""
        super().__init__(message)
        self.near = tuple(near)
