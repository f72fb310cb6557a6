"""Ask scanners outside this registry for their opinion; meant for cron."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from django.core.management.base import CommandError, CommandParser

from submissions.external_scans.dispatch import DispatchReport, run_external_scans
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.management.environment_command import EnvironmentCommand
from vskill.processes.run_lock import AlreadyRunning

DONE, LOCKED = 0, 4


class Command(EnvironmentCommand):
    """Ask for external scans of what was published, or of one skill, and end those that nobody answers."""

    all_by_default: ClassVar[bool] = True
    help = (
        "Ask the external scanners of an environment for what was published since the last run, or with --skill for "
        "one skill, and end scans that were not heard of for 20 minutes. At most 100 an hour. Exit codes: 0 done or "
        "nothing to do, 4 another run holds the lock (nothing was done)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        parser.add_argument("--skill", metavar="SLUG", default="", help="ask for the latest version of this skill")
        parser.add_argument("--scanner", metavar="NAME", default="", help="with --skill: ask this scanner only")
        parser.add_argument("--dry-run", action="store_true", help="count what would be asked for, and ask nobody")
        self.add_json_argument(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Work in each environment and exit with the gravest code."""
        if options["scanner"] and not options["skill"]:
            raise CommandError("--scanner goes with --skill. Nothing was asked.")
        code = DONE
        with self.connections_given_back():
            for env in self.selected_environments(options):
                code = max(code, self._run(env, options))
        if code != DONE:
            sys.exit(code)

    def _run(self, env: WorkerEnv, options: Mapping[str, Any]) -> int:
        try:
            report: DispatchReport = self.run_in(env, options)
        except AlreadyRunning as error:
            self.stderr.write(str(error))
            return LOCKED
        except VskillError as error:
            raise CommandError(str(error)) from error
        if options["as_json"]:
            self.stdout.write(json.dumps({**report.as_json(), "dryRun": options["dry_run"]}))
            return DONE
        for problem in report.problems:
            self.stderr.write(f"{env.name}: {problem}")
        if options["verbosity"]:
            counted = {
                "asked for": report.asked,
                "taken": report.taken,
                "refused": report.refused,
                "waiting": report.waiting,
                "timed out": report.timed_out,
            }
            parts = [f"{count} {name}" for name, count in counted.items() if count]
            limited = "; the limit of an hour leaves the rest for later" if report.limited else ""
            self.stdout.write(f"{env.name}: {', '.join(parts) or 'nothing to do'}{limited}")
        return DONE

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> DispatchReport:  # noqa: ARG002 - it is the current one
        """Ask in one environment."""
        return await run_external_scans(slug=options["skill"], provider=options["scanner"], dry_run=options["dry_run"])
