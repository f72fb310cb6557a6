"""Named operations on skills for the admin, each with a sentence about its consequence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from marketplace.known_bad.published import remember_version
from marketplace.skills.audience import show_to, show_to_everybody, show_to_members
from marketplace.skills.moderation import (
    delete_skill,
    quarantine_skill,
    quarantine_version,
    restore,
    restore_version,
    unyank,
    yank_version,
)
from vskill.accounts.audiences import team_audience
from vskill.accounts.teams import teams_of
from vskill.environments import WorkerEnv


@dataclass(frozen=True)
class Operation:
    """An operation on a skill or, with ``on_version``, on one version of it.

    ``name`` identifies it in URLs, ``label`` is the text of its button, and ``consequence`` is shown before it is
    confirmed. ``function`` takes ``env``, ``slug``, the version where it is ``on_version``, ``actor`` and ``reason``.
    """

    name: str
    label: str
    consequence: str
    function: Callable[..., Any]
    on_version: bool = False

    def run(self, env: WorkerEnv, slug: str, version: str, *, actor: str, reason: str) -> None:
        """Run the operation on the skill ``slug``; raise ``VskillError`` where it cannot be done.

        ``version`` is ignored unless the operation is ``on_version``. ``actor`` and ``reason`` go into the history.
        """
        if self.on_version:
            self.function(env, slug, version, actor=actor, reason=reason)
        else:
            self.function(env, slug, actor=actor, reason=reason)


OPERATIONS: Final[dict[str, Operation]] = {
    one.name: one
    for one in (
        Operation(
            "quarantine",
            "Quarantine",
            "The skill disappears from every page, list, search and index, and none of its files can be fetched.",
            quarantine_skill,
        ),
        Operation("restore", "Restore", "The skill is shown again; yanked versions stay yanked.", restore),
        Operation(
            "delete",
            "Delete",
            "As a quarantine, told as taken out. Its name and its versions are held, and it can be restored.",
            delete_skill,
        ),
        Operation(
            "show-to-members",
            "Show to members only",
            "Whoever is not signed in here, and brings no token, finds nothing of the skill any more.",
            show_to_members,
        ),
        Operation(
            "show-to-everybody",
            "Show to everybody",
            "The skill becomes public, as new from now on, and a signed log tells of its publications for ever.",
            show_to_everybody,
        ),
        Operation(
            "yank",
            "Yank the latest version",
            "The version is offered to nobody; who asks for it by its number gets it with a warning.",
            yank_version,
            on_version=True,
        ),
        Operation("unyank", "Take back the yank", "The version is offered again.", unyank, on_version=True),
        Operation(
            "quarantine-version",
            "Quarantine the version",
            "Nobody can fetch the version any more; the other versions stay.",
            quarantine_version,
            on_version=True,
        ),
        Operation(
            "known-bad",
            "Quarantine and remember as known bad",
            "Nobody can fetch the version any more, and its content is refused from now on, also under other names; "
            "what is similar is held. It is undone under known bad content, and by restoring the version.",
            remember_version,
            on_version=True,
        ),
        Operation(
            "restore-version",
            "Restore the version",
            "The version can be fetched again.",
            restore_version,
            on_version=True,
        ),
    )
}
_TO_TEAM: Final = "show-to-team-"


def team_operations(env: WorkerEnv) -> dict[str, Operation]:
    """Return an operation for each team of an environment, which shows a skill to that team, by its name."""
    return {
        f"{_TO_TEAM}{team.pk}": Operation(
            f"{_TO_TEAM}{team.pk}",
            f"Show to the team {team.name} only",
            f"Whoever is not in the team {team.name} finds nothing of the skill any more. Reviewers still see it.",
            partial(_show_to, audience=team_audience(team.pk)),
        )
        for team in teams_of(env)
    }


def _show_to(env: WorkerEnv, slug: str, *, audience: str, actor: str, reason: str) -> None:
    show_to(env, slug, audience, actor=actor, reason=reason)


# Operations that the list of skills offers for many at once; the others are beside each version.
FOR_MANY: Final = ("quarantine", "restore", "delete", "yank", "show-to-members", "show-to-everybody")
