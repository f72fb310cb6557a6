"""As what somebody acts who withdraws a skill or hands it over: as its publisher, or as an operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marketplace.models import SkillEntry
from submissions.uploads.owners import belongs_to
from vskill.access_tokens.models import AccessToken
from vskill.access_tokens.scopes import Scope
from vskill.accounts.roles import Action, may
from vskill.environments import WorkerEnv


@dataclass(frozen=True)
class Acting:
    """An account, whether it may act as a publisher here, and whether as an operator."""

    user: Any
    publishes: bool
    operates: bool

    @property
    def name(self) -> str:
        """Return the name of the account, which goes into the history."""
        return str(self.user.get_username())


def by_token(env: WorkerEnv, token: AccessToken) -> Acting:
    """Return as what the owner of a token acts: as far as the token was made for it."""
    operates = token.allows(Scope.OPERATE) and may(token.user, env, Action.OPERATE)
    return Acting(token.user, token.allows(Scope.PUBLISH), operates)


def by_session(env: WorkerEnv, user: Any) -> Acting:
    """Return as what somebody acts who is signed in."""
    return Acting(user, publishes=True, operates=may(user, env, Action.OPERATE))


def may_change(env: WorkerEnv, acting: Acting, skill: SkillEntry) -> bool:
    """Return whether somebody may withdraw a skill or hand it over: its publisher may, and an operator."""
    return acting.operates or (acting.publishes and belongs_to(env, acting.user, skill))
