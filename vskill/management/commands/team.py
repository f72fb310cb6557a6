"""Make teams, put accounts into them, and take them out again, from a shell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser

from vskill.accounts.teams import (
    TeamRefused,
    add_members,
    create_team,
    delete_team,
    find_team,
    remove_members,
    teams_of,
)
from vskill.environments import WorkerEnv
from vskill.kv.threads import readers, writers
from vskill.management.environment_command import EnvironmentCommand
from vskill.models import Team


class Command(EnvironmentCommand):
    """Create, list and delete teams; add accounts to one, and remove them from it."""

    help = (
        "A team is a named set of accounts in an environment, to which skills can be shown: docs/visibility.md. What "
        "is changed counts for the next request. A skill whose team is deleted is seen by nobody but reviewers and "
        "those above them, until it is shown to others by the command `audience`."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the actions with their arguments."""
        super().add_arguments(parser)
        actions = parser.add_subparsers(dest="action", required=True)
        listing = actions.add_parser("list", help="show the teams of an environment with their members")
        creating = actions.add_parser("create", help="make a team without members")
        adding = actions.add_parser("add", help="put accounts into a team")
        removing = actions.add_parser("remove", help="take accounts out of a team")
        deleting = actions.add_parser("delete", help="remove a team; its skills are then seen by reviewers alone")
        for action in (creating, adding, removing, deleting):
            action.add_argument("team", help="its name: lower-case letters, digits and single hyphens")
        for action in (adding, removing):
            action.add_argument("users", nargs="+", metavar="USER", help="accounts by name; all are changed, or none")
        for action in (listing, creating, adding, removing, deleting):
            action.add_argument("--json", action="store_true", dest="as_json", help="print one JSON document")

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Run the action in one environment; raise ``CommandError`` where it cannot be done."""
        try:
            await getattr(self, f"_{options['action']}")(env, options)
        except TeamRefused as error:
            raise CommandError(str(error)) from error

    async def _list(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        found = await readers.run(lambda: [_shown(one) for one in teams_of(env)])
        lines = [f"{one['name']}: {', '.join(one['members']) or 'nobody'}" for one in found]
        self._say(options, {"teams": found}, "\n".join(lines) or f"{env.name}: there is no team")

    async def _create(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        made = await writers.run(lambda: _shown(create_team(env, options["team"])))
        self._say(options, made, f"team {made['name']} is made, without members")

    async def _add(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        await self._change(env, options, add_members)

    async def _remove(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        await self._change(env, options, remove_members)

    async def _change(self, env: WorkerEnv, options: Mapping[str, Any], change: Any) -> None:
        team = await writers.run(lambda: _shown(change(env, options["team"], options["users"])))
        self._say(options, team, f"team {team['name']}: {', '.join(team['members']) or 'nobody'}")

    async def _delete(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        gone = await writers.run(lambda: _shown(find_team(env, options["team"])))
        await writers.run(delete_team, env, options["team"])
        self._say(options, gone, f"team {gone['name']} is deleted")

    def _say(self, options: Mapping[str, Any], document: Mapping[str, Any], words: str) -> None:
        self.stdout.write(json.dumps(document) if options["as_json"] else words)


def _shown(team: Team) -> dict[str, Any]:
    members = team.members.order_by("username").values_list("username", flat=True)
    return {"id": team.pk, "name": team.name, "members": list(members)}
