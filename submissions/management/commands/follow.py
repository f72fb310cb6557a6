"""Follow a repository from the command line, or list what is followed."""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser

from marketplace.following import Followed
from submissions.following.changes import chosen, in_order, pattern_of
from submissions.following.look import refs_of
from submissions.following.shown import followed_as_json
from submissions.following.store import CannotFollow, all_followed, follow
from submissions.following.wish import read_wish
from submissions.source.fetching import repository_url
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.hidden_characters import visible
from vskill.kv.clock import database_now
from vskill.kv.threads import readers, writers
from vskill.management.environment_command import EnvironmentCommand


class Command(EnvironmentCommand):
    """Let new commits of a repository be submitted by themselves."""

    help = (
        "Follow a repository: new commits of its default branch, of --branch, or of the tags that fit --tags are "
        "submitted by themselves (manage.py poll_followed, which cron or the scheduler runs). To follow it in another "
        "way, name it again. Exit code 1: it does not answer, or has no such branch; nothing is followed then."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        parser.add_argument("url", nargs="?", help="address of the repository")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--branch", default="", help="the branch to follow (default: the default branch)")
        what.add_argument("--tags", default="", metavar="PATTERN", help="the tags to follow, such as 'v*'")
        parser.add_argument("--reason", default="", help="why, for its history")
        parser.add_argument("--list", action="store_true", dest="listed", help="list what is followed")
        parser.add_argument("--dry-run", action="store_true", help="ask the repository, and follow nothing")
        self.add_json_argument(parser, documents="one JSON document instead of lines")

    def handle(self, *args: Any, **options: Any) -> None:
        """Follow; a database that is not prepared is said before anything is asked."""
        if bool(options["url"]) == options["listed"]:
            raise CommandError("Name a repository, or --list.")
        self.refuse_unprepared(self.selected_environments(options))
        super().handle(*args, **options)

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Follow in one environment."""
        if options["listed"]:
            self._list(await readers.run(all_followed, env), as_json=options["as_json"])
            return
        try:
            wish = await readers.run(
                lambda: read_wish(env, options["url"], branch=options["branch"], tags=options["tags"])
            )
            now = await readers.run(database_now, env.database)
            wanted = Followed(wish.repo_url, now, getpass.getuser(), branch=wish.branch, tags=wish.tags)
            found = await refs_of(env, repository_url(env, wish.repo_url), pattern_of(wanted))
            tips = chosen(wanted, found.commits)
            if not tips and not wish.tags:
                raise CannotFollow(f"The repository does not have {wanted.what}. Nothing is followed.")
            if not options["dry_run"]:
                wanted = await writers.run(
                    lambda: follow(
                        env,
                        wish.repo_url,
                        branch=wish.branch,
                        tags=wish.tags,
                        actor=getpass.getuser(),
                        reason=options["reason"],
                    )
                )
        except VskillError as error:
            raise CommandError(str(error)) from error
        if options["as_json"]:
            shown = {**followed_as_json(wanted), "found": dict(sorted(tips.items())), "dryRun": options["dry_run"]}
            self.stdout.write(json.dumps(shown))
            return
        done = "would be followed" if options["dry_run"] else "is followed"
        self.stdout.write(f"{wanted.repo_url} {done}: {wanted.what}")
        for ref in in_order(tips)[-1:]:
            self.stdout.write(f"It is at {tips[ref]} ({visible(ref, 100)}), which is submitted first.")
        if not tips:
            self.stdout.write("No tag fits yet; the first that does is submitted.")

    def _list(self, followed: list[Followed], *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps({"followed": [followed_as_json(one) for one in followed]}))
            return
        for one in followed:
            seen = f"seen {one.seen_at:%Y-%m-%d %H:%M}" if one.seen_at else "not seen yet"
            self.stdout.write(f"{one.state:11} {one.repo_url}  {one.what}  {seen}  {one.reason}".rstrip())
        self.stdout.write(f"{len(followed)} followed")
