"""To whom a submitter wants a skill shown: everybody, members or a team, and never more people than policy says.

What is chosen stays with the submission. A skill that is published keeps its own audience, so that nobody takes it from
others by submitting it again, and what was meant for fewer is never published for more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from django.db.models import Q

from marketplace.skills.store import skills_of_identity
from submissions.models import SubmissionEntry
from submissions.source.fetching import repository_url
from submissions.source_audiences import audience_of_source
from vskill.accounts.audiences import MEMBERS, PUBLIC, is_within, narrower, seeing, team_audience
from vskill.accounts.teams import TeamRefused, audience_named, teams_of, words_for
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.hidden_characters import visible
from vskill.visitors.reads import page_reads

AUDIENCE_FIELD: Final = "audience"
"""The field of a submission that has the audience which was chosen; there is none where nobody chose."""
# No team has it.
_NOBODY: Final = team_audience(0)
_NOTHING: Final = "Nothing was submitted."


class AudienceRefused(VskillError):
    """An audience that whoever submits may not choose, or that nothing can be shown to; nothing was submitted."""

    code = "audience_refused"


def audience_of(value: Mapping[str, object]) -> str:
    """Return the audience in the value of a submission that was chosen for it, empty where none was."""
    found = value.get(AUDIENCE_FIELD)
    return found if isinstance(found, str) else PUBLIC


def told_audience(value: Mapping[str, object]) -> str:
    """Return the audience that was chosen for a submission where whoever asks now belongs to it, empty otherwise.

    What was submitted for a team may have been opened to others since, who learn of no team by it.
    """
    audience = audience_of(value)
    return audience if audience in seeing() else PUBLIC


def words_to_choose(env: WorkerEnv, repo_url: str) -> list[tuple[str, str]]:
    """Return what whoever asks now may choose for a source instead of what policy says, each for fewer people.

    It is what ``chosen_audience`` takes, and how a sentence has it.
    """
    by_policy = audience_of_source(env, repo_url)
    mine = {one for one in seeing() if one != by_policy and is_within(one, by_policy)}
    teams = {team_audience(number): name for name, number in teams_of(env).values_list("name", "pk")} if mine else {}
    found = [(name, f"the team {name} alone") for audience, name in teams.items() if audience in mine]
    return [(MEMBERS, "members alone"), *found] if MEMBERS in mine else found


def chosen_audience(env: WorkerEnv, repo_url: str, word: str, *, of_any_team: bool = False) -> str:
    """Return the audience that ``word`` names for what is submitted from a source; empty where it names none.

    ``of_any_team`` is for who works on the server itself. Raises ``AudienceRefused``: for an audience that is not there
    or that whoever asks now does not belong to, in the same words, and for one that has people whom policy leaves out.
    """
    if not word:
        return PUBLIC
    try:
        audience = audience_named(env, word)
    except TeamRefused as error:
        if of_any_team:
            raise AudienceRefused(str(error)) from error
        audience = _NOBODY
    if not of_any_team and audience not in (PUBLIC, *seeing()):
        raise AudienceRefused(
            f"{visible(word, 60)!r} is no audience that you may choose: it is public, members where you are one, or a "
            f"team that you belong to; a token has to be made for read as well. {_NOTHING}"
        )
    by_policy = audience_of_source(env, repo_url)
    if not is_within(audience, by_policy):
        raise AudienceRefused(
            f"This registry shows what comes from there to {words_for(env, by_policy)}, and {visible(word, 60)} has "
            f"others. Leave the audience out, or choose one within it. {_NOTHING}"
        )
    return audience


async def audience_to_submit(env: WorkerEnv, address: str, word: str) -> str:
    """Return the audience that ``word`` names for what is submitted from an address, as ``chosen_audience`` does.

    Raises ``InvalidRepositoryURL`` as well.
    """
    if not word:
        return PUBLIC
    return await page_reads.run(chosen_audience, env, repository_url(env, address).url, word)


def intended_audience(env: WorkerEnv, repo_url: str, chosen: str) -> str:
    """Return to whom a new skill of a source is shown where ``chosen`` was chosen: the narrower of that and of policy.

    It is nobody where both are teams: policy has changed since.
    """
    found = narrower(audience_of_source(env, repo_url), chosen)
    return _NOBODY if found is None else found


def why_not_for(env: WorkerEnv, audience: str, standing: str | None, *, pending: bool = False) -> str:
    """Return why a skill that is shown to ``standing`` cannot be submitted for an audience, empty where it can.

    ``pending`` says that it is not published, and somebody's submission of it is on its way.
    """
    if audience == PUBLIC or (standing is not None and is_within(standing, audience)):
        return ""
    if pending:
        # Without a name: a job keeps this, and may be read when the other submission is there for nobody any more.
        return (
            "Somebody has submitted it for others than you chose, and it is on its way. Try again when that has ended."
        )
    others = "nobody" if standing is None else words_for(env, standing)
    return (
        f"It is published here for {others}, and its next versions are for the same people, which is not whom you "
        "chose. Leave the audience out to submit it for them, or ask an operator to show the skill to others first."
    )


def audience_of_others(env: WorkerEnv, repo_url: str, identities: Iterable[str]) -> str | None:
    """Return for whom the registry itself submits a skill of a repository that it follows, ``None`` for several teams.

    It is the narrowest audience that was chosen for anything of that repository, so that what was submitted for a team
    does not become public because it is followed. One that is published, under one of the ``identities``, keeps its
    own.
    """
    if any(skills_of_identity(env, one).exists() for one in identities):
        return PUBLIC
    rows = SubmissionEntry.objects.using(env.database).filter(namespace=env.name, audience__isnull=False)
    plain = repo_url.removesuffix(".git")
    same = rows.filter(Q(repo_url__iexact=plain) | Q(repo_url__iexact=f"{plain}.git"))
    chosen = {str(one) for one in same.order_by().values_list("audience", flat=True).distinct()}
    narrowest = [one for one in chosen if all(is_within(one, other) for other in chosen)]
    if not chosen:
        return PUBLIC
    return narrowest[0] if narrowest else None
