"""Offers of everything that a publisher has: one offer for each skill, which the receiver takes or declines as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from marketplace.catalog import find_skill_sync
from marketplace.errors import SkillNotFound
from marketplace.models import SkillEntry, SkillTransfer
from marketplace.models.ownership import PROVEN
from marketplace.ownership.claims import claims_of, proven_claims
from marketplace.ownership.transfers import TransferRefused, accept, offer, open_offers, refuse, skills_of_publisher
from marketplace.skills.publishers import claimed_address, is_uploaded, owner_identity, publisher_of
from submissions.claiming.offers import MOST_SHOWN, may_withdraw, offer_from, offer_to, receiving_repository
from submissions.source.errors import SourceError
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.kv.codec import storable
from vskill.kv.threads import readers, writers

MOST_AT_ONCE: Final = MOST_SHOWN
_MOST_REASONS: Final = 10
_MOST_REFUSED: Final = 500


def new_home(env: WorkerEnv, skill: SkillEntry, publisher: str) -> str:
    """Return where a skill is from once a ``publisher``, by its identity, has it: what is uploaded stays uploaded.

    Raises ``TransferRefused`` and ``InvalidRepositoryURL``.
    """
    if is_uploaded(str(skill.repo_url)):
        address = claimed_address(publisher, str(skill.slug))
        if publisher_of(address).identity != publisher:
            # Such as a subgroup, or the folders of this machine: whoever that leads to is not who was named.
            raise TransferRefused(
                f"{visible(publisher, 200)} is no host/owner that could upload {skill.slug}. Nothing was handed over."
            )
        return address
    return receiving_repository(env, skill, publisher)


async def offer_publisher(env: WorkerEnv, user: Any, given: Mapping[str, str]) -> None:
    """Offer each skill of the claimed ``publisher`` that is given to the ``receiver``, at most ``MOST_AT_ONCE``.

    What is offered already is passed over, so that the same again goes on with the rest. Raises ``TransferRefused``
    where anything could not be offered, or is left; it says what was.
    """
    publisher, slugs = await readers.run(_planned, env, user, given)

    def make(slug: str) -> None:
        skill = find_skill_sync(env, slug, every=True)
        if skill is None:
            raise SkillNotFound(f"{slug} is gone.")
        address = new_home(env, skill, publisher)
        offer(env, slug, address, actor=user.get_username(), reason=given.get("reason", "").strip())

    await _each("offered", slugs, make)


async def decide_all(env: WorkerEnv, user: Any, number: str, decision: str) -> None:
    """Decide about the offers of one publisher to another that are as old as the one with this ``number``, or older.

    ``decision`` is ``accept`` or ``decline``, for the receiver, or ``withdraw``, for the giver; ``user`` is who may act
    for it. Raises ``TransferRefused`` where anything could not be done, or is left; it says what was.
    """

    def chosen() -> list[SkillTransfer]:
        first = offer_from(env, user, number) if decision == "withdraw" else offer_to(env, user, number)
        # What was offered since the page was made was not seen by whoever decides.
        rows = open_offers(env).filter(pk__lte=first.pk, to_publisher=first.to_publisher)
        found = list(rows.filter(from_publisher=first.from_publisher))
        # Among what an account uploads may be offers of one that had its name before.
        return [one for one in found if decision != "withdraw" or may_withdraw(env, user, one)]

    offers, actor = await readers.run(chosen), user.get_username()
    numbers = {one.skill.slug: one.pk for one in offers}

    def decide(slug: str) -> None:
        if decision == "accept":
            accept(env, numbers[slug], actor=actor)
        else:
            refuse(env, numbers[slug], actor=actor, by_receiver=decision == "decline")

    done = {"accept": "accepted", "decline": "declined", "withdraw": "withdrawn"}[decision]
    await _each(done, list(numbers), decide)


async def _each(done: str, slugs: Sequence[str], step: Callable[[str], None]) -> None:
    """Run a step for each skill by itself; raise ``TransferRefused`` where not all of them were done."""
    refused: list[str] = []
    succeeded = 0
    for slug in slugs:
        # What is refused is met again the next time, so it takes no place of the rest.
        if succeeded == MOST_AT_ONCE or len(refused) == _MOST_REFUSED:
            break
        try:
            await writers.run(step, slug)
            succeeded += 1
        except (TransferRefused, SkillNotFound, SourceError) as error:
            refused.append(f"{slug}: {error}")
    if succeeded == len(slugs):
        return
    more, left = len(refused) - _MOST_REASONS, len(slugs) - len(refused) - succeeded
    parts = [f"{succeeded} of {len(slugs)} were {done}.", *refused[:_MOST_REASONS]]
    parts += [f"{more} more were refused."] if more > 0 else []
    parts += [f"{MOST_AT_ONCE} are done at once: send it again for the other {left}."] if left else []
    raise TransferRefused(" ".join(parts))


def _planned(env: WorkerEnv, user: Any, given: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the identity of the receiver, and the skills that are to be offered to it."""
    handle = storable(given.get("publisher", "")).strip().removeprefix("@").lower()
    claim = claims_of(env, int(user.pk)).filter(state=PROVEN, handle=handle).first() if handle else None
    if claim is None:
        raise TransferRefused(f"{visible(handle, 60)!r} is no publisher that you have claimed. Nothing was offered.")
    written = storable(given.get("receiver", "")).strip()
    # A handle names a publisher that somebody has claimed; whoever claims another one later has to be spelt out.
    named = proven_claims(env).filter(handle=written.removeprefix("@").lower()).first()
    if named is None and "/" not in written:
        raise TransferRefused(
            f"Nobody has claimed a publisher called {visible(written, 60)!r}. Name it as host/owner, such as "
            "github.com/acme. Nothing was offered."
        )
    publisher = named.publisher if named is not None else owner_identity(written)
    if publisher == claim.publisher:
        raise TransferRefused(f"That is {handle} itself. Nothing was offered.")
    offered = set(open_offers(env).filter(from_publisher=claim.publisher).values_list("skill__slug", flat=True))
    slugs = [slug for slug in skills_of_publisher(env, claim.handle) if slug not in offered]
    if not slugs:
        raise TransferRefused(f"{handle} has no skill that is not offered already. Nothing was offered.")
    return publisher, slugs
