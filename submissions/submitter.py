"""Who submits, as far as that is known."""

from __future__ import annotations

from typing import Final

from django.contrib.auth import get_user_model
from django.http import HttpRequest

from vskill.accounts.visitor import visitor_of
from vskill.visitors.reads import page_reads

SUBMITTER_NUMBER: Final = "submitterNumber"
"""The field of a submission that has the number of the account that submitted it."""


async def submitter_of(request: HttpRequest) -> str:
    """Return the name of whoever sends ``request``, empty for a stranger; it is stored and shown to operators alone."""
    return await page_reads.run(_name_of, request)


def number_of(name: str) -> int | None:
    """Return the number of the account with a name, ``None`` where there is none; it waits for the database.

    A name may be another person's later, when its account is gone: what counts as one's own goes by the number.
    """
    if not name:
        return None
    accounts = get_user_model()._default_manager.filter(username=name)
    found: int | None = accounts.values_list("pk", flat=True).first()
    return found


def _name_of(request: HttpRequest) -> str:
    user = visitor_of(request)
    return user.get_username() if user is not None else ""
