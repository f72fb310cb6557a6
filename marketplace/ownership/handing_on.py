"""A claim is handed on: whoever has a publisher offers it to another account, which takes it or not.

Nothing of the publisher changes, neither its name nor its skills. From then on the other account is its owner.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import QuerySet

from marketplace.models import PublisherClaim
from marketplace.ownership.claims import CODE_PREFIX, ClaimRefused, Proof, end, note_claim, proven_claims
from marketplace.ownership.rights import is_closed
from marketplace.ownership.transfers import OFFER_DAYS
from vskill.access_tokens.tokens import may_work_in
from vskill.accounts.access import permitted
from vskill.accounts.roles import Action
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.kv.clock import database_now

_NO_SUCH: Final = "There is no such offer to you or of yours. Nothing was changed."
_CODE_BYTES: Final = 20


def claims_offered_to(env: WorkerEnv, account: int) -> QuerySet[PublisherClaim]:
    """Return the claims that are offered to an account, by its primary key, and can still be taken."""
    since = database_now(env.database) - timedelta(days=OFFER_DAYS)
    return proven_claims(env).filter(offered_to=account, offered_at__gt=since).order_by("-pk")


def offer_claim(env: WorkerEnv, user: Any, handle: str, name: str) -> PublisherClaim:
    """Offer the claim that ``user`` has of the publisher with a ``handle`` to the account called ``name``; return it.

    An offer of it that is open already ends. Raises ``ClaimRefused`` where it is not theirs, or there is no such
    account that could have it here.
    """
    own = proven_claims(env).filter(account_id=user.pk, handle=handle.strip().removeprefix("@").lower())
    claim = own.first() if handle.strip() else None
    if claim is None:
        raise ClaimRefused(f"{visible(handle, 60)!r} is no publisher that you have claimed. Nothing was offered.")
    receiver: Any = get_user_model()._default_manager.filter(username=name.strip(), is_active=True).first()
    # Of who may not even read here, whose accounts are those of other environments, nobody learns that they are there.
    if receiver is None or receiver.pk == user.pk or not _has_place(env, receiver):
        raise ClaimRefused(f"There is no other account called {visible(name, 60)!r} here. Nothing was offered.")
    offered = {"offered_to": receiver.pk, "offered_to_name": receiver.get_username()}
    with transaction.atomic(using=env.database):
        if not own.filter(pk=claim.pk).update(offered_at=database_now(env.database), **offered):
            raise ClaimRefused("This claim has ended meanwhile. Nothing was offered.")
        note_claim(env, claim, "claim offered", user.get_username(), f"to {receiver.get_username()}")
    return proven_claims(env).get(pk=claim.pk)


def _has_place(env: WorkerEnv, account: Any) -> bool:
    return may_work_in(env, account) and permitted(account, env, Action.READ)


def take_claim(env: WorkerEnv, user: Any, number: int) -> PublisherClaim:
    """Take the claim with a ``number`` that is offered to ``user``, and return the one that is theirs from then on.

    What its former owner has offered to others ends. Raises ``ClaimRefused`` where it is offered to them no more.
    """
    with transaction.atomic(using=env.database):
        former = _answered(claims_offered_to(env, user.pk), number)
        if is_closed(env, pk=former.account_id):
            raise ClaimRefused(f"The account that offered {former.handle} is closed here. Nothing was changed.")
        end(env, former, actor=user.get_username(), reason=f"handed on to {user.get_username()}")
        now = database_now(env.database)
        made = PublisherClaim(
            namespace=env.name,
            publisher=former.publisher,
            handle=former.handle,
            account_id=user.pk,
            account_name=user.get_username(),
            code=f"{CODE_PREFIX}{secrets.token_hex(_CODE_BYTES)}",
            state=former.state,
            # Not how the former owner proved it: what an operator granted was granted to that account.
            proof=Proof.HANDED_ON,
            evidence=f"handed on by {former.account_name}",
            expires_at=now,
            proven_at=now,
        )
        made.save(using=env.database, force_insert=True)
        note_claim(env, made, "claimed", user.get_username(), made.evidence)
    return made


def leave_claim(env: WorkerEnv, user: Any, number: int) -> None:
    """Decline the offer of a claim as its receiver, or take it back as its owner, by the ``number`` of the claim.

    Raises ``ClaimRefused`` where ``user`` is neither, or it is offered no more.
    """
    with transaction.atomic(using=env.database):
        to_them, of_them = claims_offered_to(env, user.pk), proven_claims(env).filter(account_id=user.pk)
        theirs = of_them.exclude(offered_to=None)
        claim = _answered(to_them if to_them.filter(pk=number).exists() else theirs, number)
        note_claim(env, claim, "claim kept", user.get_username(), f"was offered to {claim.offered_to_name}")


def _answered(rows: QuerySet[PublisherClaim], number: int) -> PublisherClaim:
    """End the offer of a claim, and return the claim as it was; whoever comes second finds none."""
    claim = rows.filter(pk=number).first()
    if claim is None or not rows.filter(pk=number).order_by().update(
        offered_to=None, offered_to_name="", offered_at=None
    ):
        raise ClaimRefused(_NO_SUCH)
    return claim
