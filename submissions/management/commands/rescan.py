"""Send published versions to be scanned again; meant for cron."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from django.core.management.base import CommandError, CommandParser

from submissions.rescan.feed import Progress, feed, progress, send_skill
from submissions.verification.scan_keys import current_key, engines_of
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.threads import readers, writers
from vskill.management.environment_command import EnvironmentCommand
from vskill.processes.run_lock import AlreadyRunning

DONE, LOCKED = 0, 4


class Command(EnvironmentCommand):
    """Send the next published versions whose last scan was by other engines or rules, and say how far that is."""

    all_by_default: ClassVar[bool] = True
    help = (
        "Scan again what was published before the present engines and rules: the most downloaded and the newest first, "
        "policy.rescans_per_hour of them within an hour, behind whatever else waits. Waivers whose time is over end "
        "here, and what was published by them is scanned again. Each run sends a few; running it twice, or killing it "
        "half-way, changes nothing. Exit codes: 0 done or nothing to do, 4 another run holds the lock (nothing was "
        "done)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        parser.add_argument("--dry-run", action="store_true", help="say how many would be sent, and change nothing")
        self.add_json_argument(parser)
        parser.add_argument("--limit", type=int, help="send at most this many")
        parser.add_argument(
            "--skill", metavar="SLUG", help="send the versions of this skill at once, whatever the pace"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Feed each environment and exit with the gravest code."""
        if options["limit"] is not None and options["limit"] < 1:
            raise CommandError("--limit is at least 1.")
        if options["skill"] and (options["dry_run"] or options["limit"] is not None):
            raise CommandError("Nothing was done: --skill goes with neither --dry-run nor --limit.")
        code = DONE
        with self.connections_given_back():
            environments = self.selected_environments(options)
            if options["skill"] and len(environments) > 1:
                raise CommandError("Nothing was done: name the environment of the skill with --environment.")
            for env in environments:
                code = max(code, self._feed(env, options))
        if code != DONE:
            sys.exit(code)

    def _feed(self, env: WorkerEnv, options: Mapping[str, Any]) -> int:
        try:
            done: Progress = self.run_in(env, options)
        except AlreadyRunning as error:
            self.stderr.write(str(error))
            return LOCKED
        except VskillError as error:
            raise CommandError(f"{env.name}: {error}") from error
        self._print(done, options)
        return DONE

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> Progress:
        """Feed one environment, or send one of its skills."""
        if options["skill"]:
            sent = await writers.run(send_skill, env, options["skill"])
            now = await readers.run(lambda: progress(env, current_key(engines_of(env))))
            return Progress(now.environment, now.key, now.total, now.scanned, now.waiting, tuple(sent))
        return await feed(env, limit=options["limit"], dry_run=options["dry_run"])

    def _print(self, done: Progress, options: Mapping[str, Any]) -> None:
        if options["as_json"]:
            self.stdout.write(json.dumps({**done.as_json(), "dryRun": options["dry_run"]}))
        elif options["verbosity"]:
            would = "would be sent" if options["dry_run"] else "sent"
            if done.lapsed:
                ended = "would end" if options["dry_run"] else "ended"
                self.stdout.write(f"{done.environment}: {done.lapsed} waivers {ended}, because their time is over")
            self.stdout.write(
                f"{done.environment}: {len(done.sent)} {would}, {done.waiting} wait; {done.scanned} of {done.total} "
                f"versions are scanned by the present engines and rules"
            )
