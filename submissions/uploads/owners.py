"""Whose an upload is: the account's own, or a publisher's that it has claimed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.contrib.auth.models import AbstractBaseUser

from marketplace.catalog import find_skill_sync
from marketplace.models import SkillEntry
from marketplace.models.ownership import PROVEN
from marketplace.ownership.claims import claims_of
from marketplace.ownership.rights import owns
from marketplace.skills.handles import short_handle
from marketplace.skills.publishers import ACCOUNTS, claimed_address, is_uploaded, publisher_of, upload_address
from marketplace.skills.reservations import why_slug_reserved
from marketplace.skills.slugs import is_slug
from marketplace.skills.store import slug_is_taken
from marketplace.skills.visibility import is_told
from submissions.uploads.errors import UploadRefused
from submissions.uploads.stored import account_of
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible

_KEPT: Final = "Nothing was kept."


@dataclass(frozen=True)
class Wish:
    """What an account wants to publish: the slug, the version, and as whom ('': as itself).

    ``changelog`` is what it says of the version, in one line that is safe to show.
    """

    slug: str
    version: str
    owner: str = ""
    changelog: str = ""


def address_for(env: WorkerEnv, user: AbstractBaseUser, wish: Wish) -> str:
    """Return the address under which an account uploads a skill; raise ``UploadRefused`` where it may not.

    The skill belongs to the account itself, or to a publisher that it has claimed and named: a slug that anybody else
    has or had is refused.
    """
    if not is_slug(wish.slug):
        raise UploadRefused(
            400,
            f"{visible(wish.slug, 80)!r} is no name for a skill here: lower-case letters, digits and single hyphens, "
            f"64 at most. Choose one with --slug. {_KEPT}",
        )
    address = _address_of_owner(env, user, wish)
    # Whoever it is shown to: its publisher may not be among them, or bring a token for nothing but publishing.
    skill = find_skill_sync(env, wish.slug, every=True)
    if skill is not None and _is_of_owner(skill, address) and belongs_to(env, user, skill):
        return str(skill.repo_url)
    if skill is not None or slug_is_taken(env, wish.slug):
        whose = f"@{skill.publisher_handle}" if skill is not None and is_told(skill) else "another publisher"
        raise UploadRefused(409, f"The slug {wish.slug} belongs to {whose}. Choose another one with --slug. {_KEPT}")
    if reason := why_slug_reserved(env, address, wish.slug):
        raise UploadRefused(403, f"{reason} {_KEPT}")
    if address.startswith(ACCOUNTS) and account_of(env, address) not in (None, user.pk):
        name = user.get_username()
        raise UploadRefused(
            403, f"The skill {wish.slug} belongs to an account that was called {name} before. Ask an operator. {_KEPT}"
        )
    return address


def belongs_to(env: WorkerEnv, user: AbstractBaseUser, skill: SkillEntry) -> bool:
    """Return whether an account may speak for a skill: it uploads it, or has claimed its publisher.

    An account that got the name of an earlier one does not get its uploads.
    """
    return speaks_for(env, user, str(skill.publisher), str(skill.repo_url))


def speaks_for(env: WorkerEnv, user: AbstractBaseUser, publisher: str, address: str) -> bool:
    """Return whether ``user`` may speak for what a ``publisher``, by its identity, has at an ``address``."""
    if address.startswith(ACCOUNTS):
        return account_of(env, address) == int(user.pk)
    return owns(user, env, publisher)


def _is_of_owner(skill: SkillEntry, address: str) -> bool:
    """Return whether a skill is uploaded for the owner of an address; an account may have got another name since."""
    present = str(skill.repo_url)
    if address.startswith(ACCOUNTS):
        return present.startswith(ACCOUNTS)
    return is_uploaded(present) and str(skill.publisher) == publisher_of(address).identity


def _address_of_owner(env: WorkerEnv, user: AbstractBaseUser, wish: Wish) -> str:
    """Return the address of the skill for the publisher that the account has named, by default itself."""
    name = user.get_username()
    address, owner = upload_address(name, wish.slug), wish.owner.strip().lstrip("@").lower()
    if owner in ("", name.lower(), *_names(publisher_of(address).handle)):
        return address
    for claim in claims_of(env, int(user.pk)).filter(state=PROVEN):
        address = claimed_address(claim.publisher, wish.slug)
        # A very long one is shortened with a hash, and no address leads to it.
        if owner in _names(claim.handle) and publisher_of(address).identity == claim.publisher:
            return address
    raise UploadRefused(
        403,
        f"This token is of {name}, who publishes as @{name} and as publishers that {name} has claimed under "
        f"/account/publishers, and not as {visible(wish.owner, 60)}. {_KEPT}",
    )


def _names(handle: str) -> tuple[str, str]:
    return handle, short_handle(handle)
