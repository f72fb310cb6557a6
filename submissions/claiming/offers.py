"""Offers of skills to other publishers: who may make, accept, decline and withdraw one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db.models import Q

from marketplace.catalog import find_skill_sync
from marketplace.models import SkillEntry, SkillTransfer
from marketplace.ownership.rights import may_act_for
from marketplace.ownership.transfers import TransferRefused, accept, home_below, offer, refuse, transfers_of
from marketplace.ownership_models import OFFERED
from submissions.source.fetching import repository_url
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
        if skill is None or not may_act_for(user, env, skill.publisher):
            raise TransferRefused("There is no skill of this name that you could hand over. Nothing was changed.")
        address = receiving_repository(env, skill, given.get("receiver", ""))
        offer(env, skill.slug, address, actor=user.get_username(), reason=given.get("reason", "").strip())

    await writers.run(make)


async def accept_offer(env: WorkerEnv, user: Any, number: str) -> None:
    """Accept an offer, by its number, to a publisher that ``user`` may act for; raise ``TransferRefused``."""
    found = await readers.run(_offer_to, env, user, number)
    await writers.run(accept, env, found.pk, actor=user.get_username())


async def decline_offer(env: WorkerEnv, user: Any, number: str) -> None:
    """Decline an offer, by its number, to a publisher that ``user`` may act for; raise ``TransferRefused``."""
    found = await readers.run(_offer_to, env, user, number)
    await writers.run(refuse, env, found.pk, actor=user.get_username(), by_receiver=True)


async def withdraw_offer(env: WorkerEnv, user: Any, number: str) -> None:
    """Withdraw an offer, by its number, of a publisher that ``user`` may act for; raise ``TransferRefused``."""

    def of_ours() -> SkillTransfer:
        found = _found(env, number)
        return _allowed(user, env, found, found.from_publisher)

    found = await readers.run(of_ours)
    await writers.run(refuse, env, found.pk, actor=user.get_username(), by_receiver=False)


def offers_of(env: WorkerEnv, publishers: Sequence[str]) -> dict[str, list[SkillTransfer]]:
    """Return the open offers to some publishers, and those of them, by the names that the page has for both."""
    rows = transfers_of(env).filter(state=OFFERED)
    found = list(rows.filter(Q(to_publisher__in=publishers) | Q(from_publisher__in=publishers))[:MOST_SHOWN])
    return {
        "incoming": [one for one in found if one.to_publisher in publishers],
        "outgoing": [one for one in found if one.from_publisher in publishers],
    }


def _offer_to(env: WorkerEnv, user: Any, number: str) -> SkillTransfer:
    found = _found(env, number)
    return _allowed(user, env, found, found.to_publisher)


def _found(env: WorkerEnv, number: str) -> SkillTransfer:
    found = None
    if number.isascii() and number.isdigit() and len(number) <= 18:
        found = transfers_of(env).filter(pk=int(number), state=OFFERED).first()
    if found is None:
        raise TransferRefused(_NO_SUCH_OFFER)
    return found


def _allowed(user: Any, env: WorkerEnv, found: SkillTransfer, publisher: str) -> SkillTransfer:
    if not may_act_for(user, env, publisher):
        raise TransferRefused(_NO_SUCH_OFFER)
    return found
