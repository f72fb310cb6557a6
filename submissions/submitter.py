"""Who submits, as far as that is known."""

from __future__ import annotations

from django.http import HttpRequest

from vskill.accounts.visitor import visitor_of
from vskill.visitors.reads import page_reads


async def submitter_of(request: HttpRequest) -> str:
    """Return the name of whoever sends ``request``, empty for a stranger; it is stored and shown to operators alone."""
    return await page_reads.run(_name_of, request)


def _name_of(request: HttpRequest) -> str:
    user = visitor_of(request)
    return user.get_username() if user is not None else ""
