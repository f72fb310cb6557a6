"""Look whether the repositories of published skills still answer; meant for cron."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from submissions.repo_health.check import CheckReport, check_repositories
from vskill.environments import WorkerEnv
from vskill.management.environment_command import EnvironmentCommand
from vskill.processes.machine_faults import MachineFault
from vskill.processes.run_lock import AlreadyRunning

DONE, LOCKED = 0, 4
LIMIT: Final = 100
# The scheduler runs one command at a time, and recovery must not wait for this one for long.
SECONDS: Final = 45.0


class Command(EnvironmentCommand):
    """Look at the repositories that are due, one after another, and keep whether they answer."""

    all_by_default: ClassVar[bool] = True
    help = (
        "Look whether the repositories of published skills still answer, and how old their newest commit is. "
        "Those that answer are looked at once a day, the others sooner. Exit codes: 0 done or nothing to do, "
        "4 another run holds the lock (nothing was done)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        parser.add_argument("--dry-run", action="store_true", help="list what is due, and contact nobody")
        self.add_json_argument(parser)
        parser.add_argument("--limit", type=int, default=LIMIT, help="look at at most this many (default %(default)s)")
        parser.add_argument(
            "--seconds", type=float, default=SECONDS, help="begin no other after this time (default %(default)g)"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Check each environment and exit with the gravest code."""
        if options["limit"] < 1:
            raise CommandError("--limit is at least 1.")
        code = DONE
        with self.connections_given_back():
            for env in self.selected_environments(options):
                code = max(code, self._check(env, options))
        if code != DONE:
            sys.exit(code)

    def _check(self, env: WorkerEnv, options: Mapping[str, Any]) -> int:
        bar: tqdm[Any] = tqdm(
            desc=f"looking at repositories of {env.name}",
            unit="",
            leave=False,
            file=sys.stderr,
            disable=True if options["as_json"] or not options["verbosity"] else None,
        )

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        try:
            with bar:
                report: CheckReport = self.run_in(env, {**options, "progress": progress})
        except AlreadyRunning as error:
            self.stderr.write(str(error))
            return LOCKED
        except MachineFault as error:
            raise CommandError(f"{error} What was seen before that was kept.") from error
        self._print(report, options)
        return DONE

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> CheckReport:  # noqa: ARG002 - it is the current one
        """Check one environment."""
        return await check_repositories(
            limit=options["limit"],
            seconds=options["seconds"],
            dry_run=options["dry_run"],
            progress=options["progress"],
        )

    def _print(self, report: CheckReport, options: Mapping[str, Any]) -> None:
        if options["as_json"]:
            self.stdout.write(json.dumps({**report.as_json(), "dryRun": options["dry_run"]}))
            return
        if options["dry_run"]:
            for url in report.due:
                self.stdout.write(url)
            self.stdout.write(f"{report.environment}: {len(report.due)} due")
            return
        if options["verbosity"] > 1:
            for one in report.checked:
                self.stdout.write(f"{one.status:8} {one.repo_url}  {one.reason}".rstrip())
        if options["verbosity"]:
            seen = [f"{count} {status}" for status, count in report.counts().items() if count]
            rest = f"; {report.left} left for the next run" if report.left else ""
            self.stdout.write(f"{report.environment}: {', '.join(seen) or 'nothing is due'}{rest}")
