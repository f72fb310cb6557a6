"""Audiences: to whom something is shown that is not public, and what whoever sends the current request is shown.

An audience is a text: empty for everybody, ``members`` for whoever may read here, ``team:7`` for the members of a team.
What a request sees is kept in its context, which follows ``await`` and the threads that work for it. Outside of a
request nothing but what is public is seen, unless a caller says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from vskill.accounts.roles import Action, may
from vskill.environments import WorkerEnv
from vskill.models import Team

PUBLIC: Final = ""
MEMBERS: Final = "members"
TEAM: Final = "team:"
_NOTHING_MORE: Final[tuple[str, ...]] = ()
_seen: Final[ContextVar[tuple[str, ...]]] = ContextVar("vskill_audiences", default=_NOTHING_MORE)


def seeing() -> tuple[str, ...]:
    """Return the audiences that the sender of the current request belongs to; none for a stranger."""
    return _seen.get()


@contextmanager
def seen_as(audiences: tuple[str, ...]) -> Iterator[None]:
    """Show what is for ``audiences`` during the body, beside what is public."""
    before = _seen.set(audiences)
    try:
        yield
    finally:
        _seen.reset(before)


def audiences_of(user: Any, env: WorkerEnv) -> tuple[str, ...]:
    """Return the audiences that ``user`` belongs to in an environment; it asks the database.

    Whoever may read is one of the members. Who reviews has to see what is to be judged, and so belongs to every team.
    """
    if not may(user, env, Action.READ):
        return _NOTHING_MORE
    teams = Team.objects.filter(environment=env.name)
    if not may(user, env, Action.REVIEW):
        teams = teams.filter(members=user.pk)
    return (MEMBERS, *(team_audience(number) for number in teams.order_by("pk").values_list("pk", flat=True)))


def every_audience(env: WorkerEnv) -> tuple[str, ...]:
    """Return every audience of an environment: what whoever works on the server itself is shown."""
    numbers = Team.objects.filter(environment=env.name).order_by("pk").values_list("pk", flat=True)
    return (MEMBERS, *(team_audience(number) for number in numbers), team_audience(0))


def team_audience(number: int) -> str:
    """Return the audience that is the team with this primary key."""
    return f"{TEAM}{number}"


def is_within(audience: str, other: str) -> bool:
    """Return whether whoever belongs to ``audience`` belongs to ``other`` as well."""
    return other in (PUBLIC, audience) or (other == MEMBERS and audience.startswith(TEAM))


def narrower(audience: str, other: str) -> str | None:
    """Return the one of two audiences that is within the other, ``None`` where neither is: they are two teams."""
    if is_within(audience, other):
        return audience
    return other if is_within(other, audience) else None


def is_audience(text: str) -> bool:
    """Return whether ``text`` has the form of an audience."""
    number = text.removeprefix(TEAM)
    return text in (PUBLIC, MEMBERS) or (text.startswith(TEAM) and number.isascii() and number.isdigit())
