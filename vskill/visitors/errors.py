"""How database work for a visitor ends before it is done."""

from __future__ import annotations

from typing import ClassVar

from vskill.errors import VskillError


class VisitorRefused(VskillError):
    """Work for a visitor was not done, so that others are served; it is answered 503."""

    code = "refused"
    retry_after: ClassVar[int] = 10


class TooSlow(VisitorRefused):
    """The statements of one page or call took longer than their deadline, and were ended in the database."""

    code = "too_slow"

    def __init__(self) -> None:
        """Say what happened and what helps."""
        super().__init__(
            "The registry took too long to read this and stopped. Nothing was changed; "
            "ask for less, with a filter or a shorter list, or try again in a moment."
        )


class TooBusy(VisitorRefused):
    """No thread became free in time for a page or call; nothing of it was begun."""

    code = "too_busy"

    def __init__(self) -> None:
        """Say what happened and what helps."""
        super().__init__(
            "The registry is busy with what others ask for and has not begun with this. Nothing was changed; "
            "please try again in a moment."
        )


class VisitorLeft(VskillError):
    """The visitor hung up, and the rest of the work was not done; nobody waits for this."""

    code = "visitor_left"
