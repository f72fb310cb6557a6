"""Offers of skills to other publishers: who may make, accept, decline and withdraw one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from marketplace.catalog import find_skill_sync
from marketplace.models import SkillEntry, SkillTransfer
from marketplace.models.ownership import PROVEN
from marketplace.ownership.claims import claims_of
from marketplace.ownership.rights import may_act_for
from marketplace.ownership.transfers import TransferRefused, accept, home_below, offer, open_offers, refuse
from marketplace.skills.publishers import publisher_of, upload_address
from submissions.source.fetching import repository_url
from submissions.uploads.owners import belongs_to, speaks_for
from vskill.accounts.roles import Action, may
from vskill.environments import WorkerEnv
from vskill.kv.threads import readers, writers

MOST_SHOWN: Final = 50
_NO_SUCH_OFFER: Final = "There is no such offer to you or of yours. Nothing was changed."


def receiving_repository(env: WorkerEnv, skill: SkillEntry, written: str) -> str:
    """Return the normalised address of the repository that receives a skill, written as it or as ``host/owner``.

    Raises ``TransferRefused`` and ``InvalidRepositoryURL``.
    """
    written = written.strip()
    whole = "://" in written or written.count("/") > 1
    return repository_url(env, written if whole else home_below(skill.record, written)).url


async def make_offer(env: WorkerEnv, user: Any, given: Mapping[str, str]) -> None:
    """Offer the ``skill`` that is given, which ``user`` may act for, to a ``receiver``; raise ``TransferRefused``."""

    def make() -> None:
        skill = find_skill_sync(env, given.get("skill", "").strip().lower(), every=True)
        # Whether there is such a skill is said to its owner alone: it may be withheld.
        if skill is None or not (belongs_to(env, user, skill) or may(user, env, Action.OPERATE)):
            raise TransferRefused("There is no skill of this name that you could hand over. Nothing was changed.")
        address = receiving_repository(env, skill, given.get("receiver", ""))
        offer(env, skill.slug, address, actor=user.get_username(), reason=given.get("reason", "").strip())

    await writers.run(make)


async def accept_offer(env: WorkerEnv, user: Any, number: str) -> None:
    """Accept an offer, by its number, to a publisher that ``user`` may act for; raise ``TransferRefused``."""
    found = await readers.run(offer_to, env, user, number)
    await writers.run(accept, env, found.pk, actor=user.get_username())


async def decline_offer(env: WorkerEnv, user: Any, number: str) -> None:
    """Decline an offer, by its number, to a publisher that ``user`` may act for; raise ``TransferRefused``."""
    found = await readers.run(offer_to, env, user, number)
    await writers.run(refuse, env, found.pk, actor=user.get_username(), by_receiver=True)


async def withdraw_offer(env: WorkerEnv, user: Any, number: str) -> None:
    """Withdraw an offer, by its number, of a publisher that ``user`` may act for; raise ``TransferRefused``."""
    found = await readers.run(offer_from, env, user, number)
    await writers.run(refuse, env, found.pk, actor=user.get_username(), by_receiver=False)


def is_giver(env: WorkerEnv, user: Any, offered: SkillTransfer) -> bool:
    """Return whether an account may speak for the publisher that offers a skill."""
    return speaks_for(env, user, offered.from_publisher, offered.from_repo_url)


def offers_of(env: WorkerEnv, user: Any, most: int = MOST_SHOWN) -> dict[str, list[SkillTransfer]]:
    """Return the newest open offers to publishers of an account, and those that it made, by the names of the page."""
    claimed = [one.publisher for one in claims_of(env, int(user.pk)).filter(state=PROVEN)]
    own = publisher_of(upload_address(user.get_username(), "-")).identity
    given = open_offers(env).filter(from_publisher__in=[*claimed, own])[:most]
    return {
        "incoming": list(open_offers(env).filter(to_publisher__in=claimed)[:most]),
        # Another account may have had the name that the account has now.
        "outgoing": [one for one in given if is_giver(env, user, one)],
    }


def skills_of(env: WorkerEnv, user: Any, most: int = MOST_SHOWN) -> list[SkillEntry]:
    """Return the newest skills that an account may speak for: of its publishers, and those that it uploads."""
    handles = [one.handle for one in claims_of(env, int(user.pk)).filter(state=PROVEN)]
    handles.append(publisher_of(upload_address(user.get_username(), "-")).handle)
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name, publisher_handle__in=handles)
    return [one for one in rows.order_by("-pk")[:most] if belongs_to(env, user, one)]


def offer_from(env: WorkerEnv, user: Any, number: str) -> SkillTransfer:
    """Return the open offer with a ``number`` that ``user`` may withdraw; raise ``TransferRefused``."""
    found = _found(env, number)
    if not may_withdraw(env, user, found):
        raise TransferRefused(_NO_SUCH_OFFER)
    return found


def may_withdraw(env: WorkerEnv, user: Any, offered: SkillTransfer) -> bool:
    """Return whether ``user`` may take back an offer: its giver may, and an operator."""
    return is_giver(env, user, offered) or may(user, env, Action.OPERATE)


def grouped(offers: Sequence[SkillTransfer]) -> list[list[SkillTransfer]]:
    """Return offers, the newest first, in groups of one publisher to another."""
    groups: dict[tuple[str, str], list[SkillTransfer]] = {}
    for one in offers:
        groups.setdefault((one.from_publisher, one.to_publisher), []).append(one)
    return list(groups.values())


def offer_to(env: WorkerEnv, user: Any, number: str) -> SkillTransfer:
    """Return the open offer with a ``number`` that ``user`` may decide about; raise ``TransferRefused``."""
    found = _found(env, number)
    if not may_act_for(user, env, found.to_publisher):
        raise TransferRefused(_NO_SUCH_OFFER)
    return found


def _found(env: WorkerEnv, number: str) -> SkillTransfer:
    found = None
    if number.isascii() and number.isdigit() and len(number) <= 18:
        found = open_offers(env).filter(pk=int(number)).first()
    if found is None:
        raise TransferRefused(_NO_SUCH_OFFER)
    return found
