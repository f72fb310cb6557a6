"""The one rule of who may act for a publisher."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model

from marketplace.ownership.claims import owner_claim
from vskill.access_tokens.tokens import may_work_in
from vskill.accounts.limits import limit_of
from vskill.accounts.roles import Action, may
from vskill.environments import WorkerEnv


def may_act_for(account: Any, env: WorkerEnv, publisher: str) -> bool:
    """Return whether ``account`` may act for a publisher, by its identity, in an environment.

    That is whoever has its proven claim, and operators. A stranger and an account that is not active may not. Call it
    on a database thread.
    """
    if account is None or not account.is_authenticated or not account.is_active:
        return False
    return owns(account, env, publisher) or may(account, env, Action.OPERATE)


def owns(account: Any, env: WorkerEnv, publisher: str) -> bool:
    """Return whether ``account`` has the proven claim of a publisher, by its identity, in an environment.

    What an account uploads is its own by another rule, which knows accounts that had its name before.
    """
    limit = limit_of(account)
    if not publisher or (limit is not None and env.name not in limit):
        return False
    claim = owner_claim(env, publisher)
    return claim is not None and claim.account_id == account.pk


def is_closed(env: WorkerEnv, **account: Any) -> bool:
    """Return whether the ``account``, by its ``pk`` or ``username``, was closed or works in other environments alone.

    What it has offered before is then not to be taken. A name that is of no account, such as one of a terminal, is not.
    """
    found = get_user_model()._default_manager.filter(**account).first()
    return found is not None and not may_work_in(env, found)
