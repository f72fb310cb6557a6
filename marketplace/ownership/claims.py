"""Claims of publishers: begun by an account, proven, granted by an operator, and ended.

An account begins a claim and gets a code. Whoever can put that code where only the owner can write has proven it. The
database lets one account have a publisher at a time, whoever proves first.
"""

from __future__ import annotations

import logging
import secrets
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from marketplace.models import PublisherClaim, SkillTransfer
from marketplace.models.ownership import BY_OPERATOR, OFFERED, PROVEN, WAITING, WITHDRAWN
from marketplace.ownership.one_owner import why_not_of_one_owner
from marketplace.skills.publishers import publisher_of
from marketplace.skills.store import record_event
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.clock import database_now

logger = logging.getLogger(__name__)

HOURS: Final = 72
MOST_WAITING: Final = 10
_CHECK_SECONDS: Final = 10
# Of a code, without what comes before it.
_CODE_BYTES: Final = 20
CODE_PREFIX: Final = "vskill-claim-"
ENDED: Final = "ended"


class ClaimRefused(VskillError):
    """A claim cannot be begun, proven or ended like this; nothing was changed."""

    code = "claim_refused"


class Proof(StrEnum):
    """How a claim was proven."""

    FILE = "file"
    BRANCH = "branch"
    SIGN_IN = "sign-in"
    OPERATOR = BY_OPERATOR
    HANDED_ON = "handed on"


PROOF_WORDS: Final = {
    Proof.FILE: "a file in its repository",
    Proof.BRANCH: "a branch of its repository",
    Proof.SIGN_IN: "a sign-in at its host",
    Proof.OPERATOR: "an operator of this registry",
    Proof.HANDED_ON: "whoever had it before",
}


def claims_of(env: WorkerEnv, account: int) -> QuerySet[PublisherClaim]:
    """Return the claims of an account, by its primary key, that are proven or may still be, the newest first."""
    open_ones = Q(state=PROVEN) | Q(state=WAITING, expires_at__gt=database_now(env.database))
    return _claims(env).filter(open_ones, account_id=account).order_by("-pk")


def proven_claims(env: WorkerEnv) -> QuerySet[PublisherClaim]:
    """Return the claims of an environment that are proven."""
    return _claims(env).filter(state=PROVEN)


def owner_claim(env: WorkerEnv, publisher: str) -> PublisherClaim | None:
    """Return the proven claim of a publisher, by its identity, or ``None``."""
    return proven_claims(env).filter(publisher=publisher).first()


def begin(env: WorkerEnv, user: Any, repo_url: str) -> PublisherClaim:
    """Begin a claim of the publisher of a repository for ``user``, and return it with its code.

    ``repo_url`` is a normalised address, in which the proof will be looked for. A claim that waits already keeps its
    code and gets this address. Raises ``ClaimRefused`` where somebody has the publisher, where the address does not say
    who owns it, or where too many claims wait.
    """
    if reason := why_not_of_one_owner(repo_url):
        raise ClaimRefused(f"{reason} Nothing was begun.")
    owner, now = publisher_of(repo_url), database_now(env.database)
    _refuse_owned(env, owner.identity, user)
    waiting = _claims(env).filter(account_id=user.pk, state=WAITING)
    waiting.filter(expires_at__lte=now).delete()
    for _attempt in range(2):
        found = waiting.filter(publisher=owner.identity).first()
        if found is not None:
            waiting.filter(pk=found.pk).update(repo_url=repo_url)
            found.repo_url = repo_url
            return found
        if waiting.count() >= MOST_WAITING:
            raise ClaimRefused(f"{MOST_WAITING} claims of yours wait already. Prove or give up one of them first.")
        made = PublisherClaim(
            namespace=env.name,
            publisher=owner.identity,
            handle=owner.handle,
            account_id=user.pk,
            account_name=user.get_username(),
            repo_url=repo_url,
            code=f"{CODE_PREFIX}{secrets.token_hex(_CODE_BYTES)}",
            expires_at=now + timedelta(hours=HOURS),
        )
        try:
            with transaction.atomic(using=env.database):
                made.save(using=env.database, force_insert=True)
        except IntegrityError:
            # The same person began it at this moment in another window.
            continue
        return made
    raise ClaimRefused("This claim is being begun in another window. Nothing was changed; look there.")


def may_check(env: WorkerEnv, claim: PublisherClaim) -> bool:
    """Return whether the host of a claim may be asked now, and note that it is; every ten seconds it may."""
    now = database_now(env.database)
    rested = Q(checked_at=None) | Q(checked_at__lt=now - timedelta(seconds=_CHECK_SECONDS))
    return bool(_claims(env).filter(rested, pk=claim.pk).update(checked_at=now))


def prove(env: WorkerEnv, claim: PublisherClaim, proof: Proof, evidence: str) -> PublisherClaim:
    """Make a waiting claim a proven one, and return it; ``evidence`` says where the proof was seen.

    Raises ``ClaimRefused`` where it has lapsed or ended meanwhile, or where another account was first.
    """
    now = database_now(env.database)
    row = _claims(env).filter(pk=claim.pk, state=WAITING, expires_at__gt=now)
    try:
        with transaction.atomic(using=env.database):
            if not row.update(state=PROVEN, proof=proof, evidence=evidence[:600], proven_at=now):
                raise ClaimRefused("This claim has lapsed, or was given up. Begin it again: its code counts no more.")
            note_claim(env, claim, "claimed", claim.account_name, f"proven by {PROOF_WORDS[proof]}: {evidence}")
    except IntegrityError:
        raise _taken(env, claim.publisher) from None
    logger.info("%s was claimed by %s: %s", claim.publisher, claim.account_name, proof)
    return _claims(env).get(pk=claim.pk)


def grant(env: WorkerEnv, user: Any, publisher: str, handle: str, *, actor: str, reason: str) -> PublisherClaim:
    """Give a publisher to an account without a proof, because the ``actor``, an operator, says so; return the claim.

    ``publisher`` is its identity. ``reason`` is kept. Raises ``ClaimRefused`` where somebody has the publisher.
    """
    _refuse_owned(env, publisher, user)
    now = database_now(env.database)
    made = PublisherClaim(
        namespace=env.name,
        publisher=publisher,
        handle=handle,
        account_id=user.pk,
        account_name=user.get_username(),
        code=f"{CODE_PREFIX}{secrets.token_hex(_CODE_BYTES)}",
        state=PROVEN,
        proof=Proof.OPERATOR,
        evidence=f"{actor}: {reason}"[:600],
        expires_at=now,
        proven_at=now,
    )
    try:
        with transaction.atomic(using=env.database):
            made.save(using=env.database, force_insert=True)
            note_claim(env, made, "claimed", actor, f"granted to {made.account_name}: {reason}")
    except IntegrityError:
        raise _taken(env, publisher) from None
    return made


def end(env: WorkerEnv, claim: PublisherClaim, *, actor: str, reason: str) -> bool:
    """End a claim, given up by its owner or revoked by an operator; return ``False`` where it had ended.

    ``actor`` and ``reason`` are kept. What was done under the claim stays done.
    """
    now = database_now(env.database)
    row = _claims(env).filter(pk=claim.pk, state__in=(WAITING, PROVEN))
    with transaction.atomic(using=env.database):
        ended = bool(row.update(state=ENDED, ended_at=now, ended_by=actor, end_reason=reason))
        if ended and claim.state == PROVEN:
            # What it offered to others is its own no more.
            offered = SkillTransfer.objects.using(env.database).filter(namespace=env.name, state=OFFERED)
            offered.filter(from_publisher=claim.publisher).update(
                state=WITHDRAWN, decided_by=actor[:150], decided_at=now
            )
            note_claim(env, claim, "claim ended", actor, f"of {claim.account_name}: {reason}")
    return ended


def _claims(env: WorkerEnv) -> QuerySet[PublisherClaim]:
    rows: QuerySet[PublisherClaim] = PublisherClaim.objects.using(env.database).filter(namespace=env.name)
    return rows


def _refuse_owned(env: WorkerEnv, publisher: str, user: Any) -> None:
    if (present := owner_claim(env, publisher)) is None:
        return
    if present.account_id == user.pk:
        raise ClaimRefused(f"{publisher} is yours already.")
    raise _taken(env, publisher)


def _taken(env: WorkerEnv, publisher: str) -> ClaimRefused:
    present = owner_claim(env, publisher)
    who = f"by {present.account_name}" if present is not None else "by somebody"
    return ClaimRefused(
        f"{publisher} is claimed {who} already. Nothing was changed. That account can give it up, and the operators of "
        "this registry can end its claim."
    )


def note_claim(env: WorkerEnv, claim: PublisherClaim, action: str, actor: str, reason: str) -> None:
    """Append to the history what was done with a ``claim``: the ``action``, the ``actor`` and the ``reason``."""
    record_event(env, f"publisher:{claim.publisher}", action, actor=actor[:150], reason=reason)
