"""Hand skills over for the owner of a token: an offer, and what its receiver or its giver decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from marketplace.api.http import ApiError
from marketplace.api.lookup import SKILL_NOT_FOUND, visible_skill
from marketplace.catalog import find_skill_sync
from marketplace.models import PublisherClaim, SkillEntry, SkillTransfer
from marketplace.ownership.claims import proven_claims
from marketplace.ownership.rights import owns
from marketplace.ownership.transfers import accept, offer, open_offers, refuse
from marketplace.skills.handles import is_named, present_handle, short_handle
from marketplace.skills.store import in_transaction
from submissions.claiming.offers import is_giver
from submissions.claiming.whole import new_home
from submissions.uploads.acting import Acting, by_token, may_change
from submissions.uploads.errors import UploadRefused
from vskill.access_tokens.models import AccessToken
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible

_UNCHANGED: Final = "Nothing was changed."
ACCEPT: Final = "accept"
REJECT: Final = "reject"
CANCEL: Final = "cancel"


@dataclass(frozen=True)
class Named:
    """A skill as somebody names it: its slug, and its publisher where one was named."""

    slug: str
    owner: str = ""


def offer_for(env: WorkerEnv, token: AccessToken, named: Named, receiver: str, message: str) -> SkillTransfer:
    """Offer a skill for the owner of ``token`` to the publisher with the handle ``receiver``; return the transfer.

    It is done at once where the owner of the token may act for the receiver too. ``message`` is kept as the reason.
    Raises ``UploadRefused``, and what ``offer`` and ``accept`` raise.
    """
    acting = by_token(env, token)
    skill = _skill(env, acting, named)
    if not may_change(env, acting, skill):
        raise UploadRefused(
            403,
            f"{skill.slug} is handed over by the account that uploads it or has claimed its publisher, with a token "
            f"for publish, or by an operator, with one for operate. {_UNCHANGED}",
        )
    claim, actor = _receiver(env, receiver), acting.name
    address = new_home(env, skill, claim.publisher)

    def make() -> SkillTransfer:
        made = offer(env, skill.slug, address, actor=actor, reason=message.strip())
        if _acts_for(env, acting, claim.publisher):
            return accept(env, made.pk, actor=actor)
        return made

    return in_transaction(env, make)


def decide_for(env: WorkerEnv, token: AccessToken, named: Named, decision: str) -> SkillTransfer:
    """Accept, reject or cancel the open offer of the skill that is ``named`` for the owner of ``token``; return it.

    ``decision`` is one of the three: the receiver accepts and rejects, the giver cancels. Raises ``UploadRefused``, and
    what ``accept`` and ``refuse`` raise.
    """
    acting = by_token(env, token)
    skill = find_skill_sync(env, named.slug.lower(), every=True)
    offered = open_offers(env).filter(skill=skill).first() if skill is not None else None
    if offered is None or not _decides(env, acting, offered, decision) or not _is_meant(env, offered.skill, named):
        # Whoever has no part in an offer is told of none, and of the skill what everybody is told.
        slug = _visible(env, named).slug
        whose = "of yours" if decision == CANCEL else "to a publisher that you have claimed"
        raise UploadRefused(404, f"There is no open offer of {slug} {whose}. {_UNCHANGED}")
    if decision == ACCEPT:
        return accept(env, offered.pk, actor=acting.name)
    return refuse(env, offered.pk, actor=acting.name, by_receiver=decision == REJECT)


def _decides(env: WorkerEnv, acting: Acting, offered: SkillTransfer, decision: str) -> bool:
    if decision != CANCEL:
        return _acts_for(env, acting, offered.to_publisher)
    return acting.operates or (acting.publishes and is_giver(env, acting.user, offered))


def _acts_for(env: WorkerEnv, acting: Acting, publisher: str) -> bool:
    return acting.operates or (acting.publishes and owns(acting.user, env, publisher))


def _skill(env: WorkerEnv, acting: Acting, named: Named) -> SkillEntry:
    """Return the skill that is named: whoever may change it finds it also where it is shown to others alone."""
    found = find_skill_sync(env, named.slug.lower(), every=True)
    if found is not None and _is_meant(env, found, named) and may_change(env, acting, found):
        return found
    return _visible(env, named)


def _visible(env: WorkerEnv, named: Named) -> SkillEntry:
    try:
        return visible_skill(env, named.slug, owner=named.owner, hidden=True)
    except ApiError as error:
        text = SKILL_NOT_FOUND if error.status == 404 else str(error)
        raise UploadRefused(error.status, text) from error


def _is_meant(env: WorkerEnv, skill: SkillEntry, named: Named) -> bool:
    return not named.owner or is_named(env, skill, named.owner)


def _receiver(env: WorkerEnv, written: str) -> PublisherClaim:
    """Return the claim of the publisher with a handle or short handle; nobody else could accept an offer."""
    name = written.strip().removeprefix("@").lower()
    if not name:
        raise UploadRefused(400, f"'toUserHandle' is the handle of who receives the skill. {_UNCHANGED}")
    claim = proven_claims(env).filter(handle=name).first()
    if claim is None and short_handle(handle := present_handle(env, name)) == name:
        claim = proven_claims(env).filter(handle=handle).first()
    if claim is None:
        raise UploadRefused(
            404,
            f"Nobody here has claimed a publisher called {visible(name, 60)!r}. A skill goes to a publisher, such as "
            f"acme or team.git.corp.example, that somebody has claimed under /account/publishers. {_UNCHANGED}",
        )
    return claim
