"""Names that the policy of an environment reserves for owners: who may take one, and what somebody else is told."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote

from marketplace.models import PublisherClaim
from marketplace.models.ownership import BY_OPERATOR, PROVEN
from marketplace.skills.publishers import ACCOUNTS, is_uploaded, owned_by, publisher_of
from marketplace.skills.slugs import base_slug
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.reserved_names import ReservedName


def why_reserved(env: WorkerEnv, repo_url: str, name: str, *, had: str | None = None) -> str:
    """Return why the owner of a repository may not publish a skill called ``name``, or '' where it may.

    The name itself may be reserved, and so may that of the owner, under which its skills would be listed. A published
    skill keeps its name: ``had`` is the one that it has, ``None`` for a new skill.
    """
    if not env.policy.reserved_names:
        return ""
    if name != had and (held := _held(env, repo_url, (name, base_slug(name)))) is not None:
        return (
            f"The name {visible(name, 100)} is reserved here for {_owners(held)} ({held.pattern}), and this repository "
            "is not theirs. Give the skill another name, or ask the operators of this registry."
        )
    if had is None and (held := _held(env, repo_url, names_of_owner(repo_url))) is not None:
        return (
            f"Names of publishers such as that of this repository's owner are reserved here for {_owners(held)} "
            f"({held.pattern}). Ask the operators of this registry."
        )
    return ""


def may_have_slug(env: WorkerEnv, repo_url: str, slug: str) -> bool:
    """Return whether the owner of a repository may take a slug, as far as the policy reserves names."""
    return _held(env, repo_url, (slug,)) is None


def why_slug_reserved(env: WorkerEnv, repo_url: str, slug: str) -> str:
    """Return whose name a slug is by the policy where the owner of a repository may not take it, and '' otherwise."""
    held = _held(env, repo_url, (slug,))
    return "" if held is None else f"{slug!r} is reserved for {_owners(held)} ({held.pattern})."


def names_of_owner(repo_url: str) -> tuple[str, ...]:
    """Return the names under which the owner of a repository is seen: the handle, and the owner's own name.

    Where the path begins with a service of the host, such as ``git``, the owner is the segment behind it.
    """
    publisher = publisher_of(repo_url)
    own = unquote(publisher.identity.rpartition("/")[2])
    return tuple(dict.fromkeys((publisher.handle, publisher.owner.partition("/")[0], own)))


def _held(env: WorkerEnv, repo_url: str, names: Iterable[str]) -> ReservedName | None:
    """Return the reservation of one of ``names`` for others than the owner of a repository, or ``None``.

    Of several patterns that cover a name the longest counts, as of credentials.
    """
    for name in names:
        covering = [one for one in env.policy.reserved_names if one.covers(name)]
        closest = max(covering, key=lambda one: len(one.pattern), default=None)
        if closest is not None and not _is_of(env, repo_url, closest.owners):
            return closest
    return None


def _is_of(env: WorkerEnv, repo_url: str, owners: Iterable[str]) -> bool:
    """Return whether a skill comes from one of ``owners``: out of a repository, or by an account that is known for it.

    Whoever may push to one repository of an owner can claim that owner, which is not enough to take its names.
    """
    if not owned_by(repo_url, owners):
        return False
    if not is_uploaded(repo_url) or repo_url.startswith(ACCOUNTS):
        return True
    claims = PublisherClaim.objects.using(env.database).filter(namespace=env.name, state=PROVEN, proof=BY_OPERATOR)
    return bool(claims.filter(publisher=publisher_of(repo_url).identity).exists())


def _owners(held: ReservedName) -> str:
    return " and ".join(held.owners)
