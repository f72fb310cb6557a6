"""Edit the block list from a shell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from asgiref.sync import sync_to_async
from django.core.management.base import CommandError, CommandParser

from marketplace.skills.blocklist import BlockKind, InvalidBlock, add_block, list_blocks, remove_block
from marketplace.skills.publishers import full_address
from vskill.environments import WorkerEnv
from vskill.management.environment_command import EnvironmentCommand


class Command(EnvironmentCommand):
    """Add to the block list, remove from it, or list it."""

    help = "Block repositories, owners (host/owner) or content hashes; what is blocked is not published."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the actions ``add``, ``remove`` and ``list`` with their arguments."""
        super().add_arguments(parser)
        actions = parser.add_subparsers(dest="action", required=True)
        for action in ("add", "remove"):
            changing = actions.add_parser(action)
            changing.add_argument("kind", choices=[str(kind) for kind in BlockKind])
            changing.add_argument(
                "value",
                help="a repository's address or owner/name on GitHub, host/owner, or a content hash",
            )
            changing.add_argument("--reason", required=action == "add", default="", help="why; submitters are shown it")
            changing.add_argument("--actor", default="operator", help="who decided it")
        listing = actions.add_parser("list")
        listing.add_argument("--json", action="store_true", help="print one JSON object for each entry")

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Run the action in one environment; raise ``CommandError`` for a value that cannot be blocked."""
        try:
            await sync_to_async(self._act)(env, options)
        except InvalidBlock as error:
            raise CommandError(str(error)) from error

    def _act(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        if options["action"] == "list":
            for block in list_blocks(env):
                self.stdout.write(json.dumps(asdict(block)) if options["json"] else str(block))
            return
        kind, value = BlockKind(options["kind"]), options["value"].strip()
        if kind is BlockKind.REPO:
            value = full_address(value)
        if options["action"] == "add":
            self.stdout.write(str(add_block(env, kind, value, actor=options["actor"], reason=options["reason"])))
        elif remove_block(env, kind, value, actor=options["actor"], reason=options["reason"]):
            self.stdout.write(f"{kind} {value} is no longer blocked")
        else:
            raise CommandError(f"{kind} {value} is not on the block list of {env.name!r}; nothing was changed.")
