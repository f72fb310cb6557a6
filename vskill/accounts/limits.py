"""The limit of a user to some environments."""

from __future__ import annotations

from typing import Protocol, cast

from vskill.models import StaffLimit


class _Account(Protocol):
    """What this module reads of a user."""

    is_superuser: bool
    environment_limit: StaffLimit


def limit_of(user: object) -> frozenset[str] | None:
    """Return the names of the only environments that a user may work in, or ``None`` where there is no limit."""
    account = cast(_Account, user)
    if account.is_superuser:
        return None
    try:
        return frozenset(account.environment_limit.environments)
    except StaffLimit.DoesNotExist:
        return None
