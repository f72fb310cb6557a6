"""The base class of all errors of the product."""

from __future__ import annotations

from typing import ClassVar


class VskillError(Exception):
    """Base of every error that vskill raises on purpose.

    ``str(error)`` is a sentence for a person: what happened, what was kept, what to do. ``code`` is a stable word for
    programs; APIs return it and tests compare it.
    """

    code: ClassVar[str] = "error"
