"""To whom the skills of a repository are shown that is named by policy, before and when they are published.

A place that the policy shows to some is, for all others, one that the registry cannot read: nobody submits from there
who may not see what is published, and neither submissions nor lists of its skills are there for them.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlsplit

from django.db.models import F, Q
from django.db.models.functions import Left, Lower
from django.db.models.lookups import Exact

from marketplace.skills.publishers import CASE_BLIND_HOSTS
from submissions.source.errors import RepositoryNotFound
from submissions.source.fetching import repository_url
from submissions.source.git_errors import NOT_SHOWN
from submissions.source.logins import covers
from vskill.accounts.audiences import PUBLIC, seeing, team_audience
from vskill.accounts.teams import WORDS, teams_of
from vskill.environments import Policy, WorkerEnv
from vskill.visitors.reads import page_reads

# No team has it: what is shown to a team that is not there is shown to nobody.
_NOBODY: Final = team_audience(0)


def audience_of_source(env: WorkerEnv, url: str) -> str:
    """Return to whom a new skill of the repository at ``url`` is shown; call it on a database thread."""
    fitting = [place for place in _words(env) if covers(place, url)]
    return _audiences(env)[max(fitting, key=lambda one: one.count("/"))] if fitting else PUBLIC


def is_unseen(env: WorkerEnv, url: str) -> bool:
    """Return whether whoever asks now may know nothing of the repository at ``url``."""
    return bool(_words(env)) and audience_of_source(env, url) not in (PUBLIC, *seeing())


async def refuse_unseen(env: WorkerEnv, url: str) -> None:
    """Raise ``RepositoryNotFound`` for a visitor who may not see what is published from the address ``url``.

    It says what is said of a repository that nothing here opens. An address that is none is left to whoever reads it.
    """
    if _words(env):
        address = repository_url(env, url).url
        if await page_reads.run(is_unseen, env, address):
            raise RepositoryNotFound(NOT_SHOWN.format(host=urlsplit(address).hostname))


def unseen_rows(env: WorkerEnv) -> Q | None:
    """Return the condition of the rows with a ``repo_url`` that whoever asks now may not know of; ``None``: none is."""
    if not _words(env):
        return None
    audiences = _audiences(env)
    unseen = [place for place, audience in audiences.items() if audience not in (PUBLIC, *seeing())]
    condition: Q | None = None
    for place in unseen:
        one = _below(place)
        for inside in audiences:
            if inside.startswith(f"{place}/") and inside not in unseen:
                one &= ~_below(inside)
        condition = one if condition is None else condition | one
    return condition


def _words(env: WorkerEnv) -> dict[str, str]:
    """Return what the policy calls the audience of each place that it says something of."""
    policy = env.policy
    by_default = (
        dict.fromkeys(_opened(policy), policy.credential_audience) if policy.credential_audience != "public" else {}
    )
    return {**by_default, **dict(policy.audiences)}


def _opened(policy: Policy) -> list[str]:
    """Return the places that are read with a credential or a key, and those that are read from such a mirror.

    A repository is known by its own address, and a credential by that of the mirror it is read from.
    """
    places = [*(one.place for one in policy.source_credentials), *(one.place for one in policy.source_ssh_keys)]
    found = list(places)
    for prefix, mirror in policy.source_rewrites:
        known, there = (url.removeprefix("https://").rstrip("/") for url in (prefix, mirror))
        for place in places:
            if covers(place, mirror):
                found.append(known)
            elif place.casefold().startswith(f"{there.casefold()}/"):
                found.append(known + place[len(there) :])
    return found


def _audiences(env: WorkerEnv) -> dict[str, str]:
    words = _words(env)
    teams = dict(teams_of(env).filter(name__in=set(words.values()) - WORDS.keys()).values_list("name", "pk"))
    known = {**WORDS, **{name: team_audience(number) for name, number in teams.items()}}
    return {place: known.get(word, _NOBODY) for place, word in words.items()}


def _below(place: str) -> Q:
    """Return the condition of the rows whose repository is at or below a place, in whichever way it is written."""
    blind = place.partition("/")[0] in CASE_BLIND_HOSTS
    found = Q()
    for written in dict.fromkeys((place, quote(place, safe="/:~@+=,$!()'*;&%"))):
        address = f"https://{written.lower() if blind else written}"
        column = Lower("repo_url") if blind else F("repo_url")
        for whole in (address, f"{address}.git"):
            found |= Q(Exact(column, whole))
        found |= Q(Exact(Left(column, len(address) + 1), f"{address}/"))
    return found
