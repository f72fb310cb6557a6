"""Teams: made, filled, emptied and removed, and the names by which people speak of audiences."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from vskill.accounts.audiences import MEMBERS, PUBLIC, TEAM, team_audience
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.hidden_characters import visible
from vskill.kv.codec import storable
from vskill.models import Team

_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LONGEST: Final = 40
# What people call the audiences that are no teams.
WORDS: Final = {"public": PUBLIC, MEMBERS: MEMBERS}


class TeamRefused(VskillError):
    """A team that cannot be made, or is not there; nothing was changed."""

    code = "team_refused"


def teams_of(env: WorkerEnv) -> QuerySet[Team]:
    """Return the teams of an environment in the order of their names."""
    return Team.objects.filter(environment=env.name).order_by("name")


def find_team(env: WorkerEnv, name: str) -> Team:
    """Return the team of this name; raise ``TeamRefused`` where there is none."""
    found = teams_of(env).filter(name=storable(name)[:_LONGEST]).first()
    if found is None:
        known = ", ".join(teams_of(env).values_list("name", flat=True)[:20]) or "none"
        raise TeamRefused(f"{env.name} has no team {visible(name, 60)!r}; it has: {known}. Nothing was changed.")
    return found


def create_team(env: WorkerEnv, name: str) -> Team:
    """Make a team without members; raise ``TeamRefused`` for a name that is taken or that no team can have."""
    check_team_name(name)
    try:
        with transaction.atomic(using=Team.objects.db):
            return Team.objects.create(environment=env.name, name=name)
    except IntegrityError:
        raise TeamRefused(f"{env.name} has a team {name!r} already. Nothing was changed.") from None


def check_team_name(name: str) -> None:
    """Raise ``TeamRefused`` for what cannot be the name of a team."""
    if name in WORDS or len(name) > _LONGEST or not _NAME.fullmatch(name):
        raise TeamRefused(
            f"{visible(name, 60)!r} is no name for a team: lower-case letters, digits and single hyphens, {_LONGEST} "
            f"at most, and neither {' nor '.join(WORDS)}. Nothing was changed."
        )


def delete_team(env: WorkerEnv, name: str) -> None:
    """Remove a team; what was shown to it is then seen by nobody but reviewers and those above them."""
    find_team(env, name).delete()


def add_members(env: WorkerEnv, name: str, usernames: Iterable[str]) -> Team:
    """Put accounts into a team, all or none; who is in it stays. Raises ``TeamRefused``."""
    team = find_team(env, name)
    team.members.add(*accounts_named(usernames))
    return team


def remove_members(env: WorkerEnv, name: str, usernames: Iterable[str]) -> Team:
    """Take accounts out of a team, all or none. Raises ``TeamRefused``."""
    team = find_team(env, name)
    team.members.remove(*accounts_named(usernames))
    return team


def accounts_named(usernames: Iterable[str]) -> list[Any]:
    """Return the accounts of these names; raise ``TeamRefused`` with those that there are not."""
    wanted = list(dict.fromkeys(one for one in usernames if "\0" not in one))
    found = {one.get_username(): one for one in get_user_model()._default_manager.filter(username__in=wanted)}
    if absent := [visible(one, 60) for one in wanted if one not in found]:
        raise TeamRefused(f"There is no account {', '.join(absent)}. Nothing was changed.")
    return list(found.values())


def audience_named(env: WorkerEnv, word: str) -> str:
    """Return the audience that a person names: ``public``, ``members`` or a team. Raises ``TeamRefused``."""
    return WORDS[word] if word in WORDS else team_audience(find_team(env, word).pk)


def name_of_audience(env: WorkerEnv, audience: str | None) -> str:
    """Return what people call an audience; nobody where it is that of a team that is no more, or none at all."""
    for word, one in WORDS.items():
        if one == audience:
            return word
    number = (audience or "").removeprefix(TEAM)
    found = teams_of(env).filter(pk=int(number)).first() if number.isdigit() else None
    return found.name if found is not None else "nobody"


def words_for(env: WorkerEnv, audience: str) -> str:
    """Return an audience as a part of a sentence: ``everybody``, ``members alone``, ``the team hr alone``."""
    if audience in WORDS.values():
        return "everybody" if audience == PUBLIC else "members alone"
    name = name_of_audience(env, audience)
    return "nobody" if name == "nobody" else f"the team {name} alone"
