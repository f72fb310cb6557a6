"""Follow a repository no longer."""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser

from marketplace.following import read_followed_sync
from submissions.following.store import NotFollowed, unfollow
from submissions.following.wish import read_wish
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.threads import readers, writers
from vskill.management.environment_command import EnvironmentCommand


class Command(EnvironmentCommand):
    """Stop submitting the new commits of a repository."""

    help = (
        "Follow a repository no longer. What was submitted and published from it stays. Exit code 1: nobody follows it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        parser.add_argument("url", help="address of the repository")
        parser.add_argument("--reason", default="", help="why, for its history")
        parser.add_argument("--dry-run", action="store_true", help="say what would end, and change nothing")
        self.add_json_argument(parser, documents="one JSON document instead of lines")

    def handle(self, *args: Any, **options: Any) -> None:
        """End it; a database that is not prepared is said first."""
        self.refuse_unprepared(self.selected_environments(options))
        super().handle(*args, **options)

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """End it in one environment."""
        try:
            url = (await readers.run(lambda: read_wish(env, options["url"]))).repo_url
            before = await readers.run(read_followed_sync, env, url)
            if before is None:
                raise NotFollowed(f"Nobody follows {url} here. Nothing was changed.")
            if not options["dry_run"]:
                await writers.run(lambda: unfollow(env, url, actor=getpass.getuser(), reason=options["reason"]))
        except VskillError as error:
            raise CommandError(str(error)) from error
        if options["as_json"]:
            self.stdout.write(json.dumps({"repoUrl": url, "ended": not options["dry_run"]}))
        else:
            done = "would not be followed any more" if options["dry_run"] else "is not followed any more"
            self.stdout.write(f"{url} {done}: {before.what}")
