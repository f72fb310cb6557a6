"""Look at the followed repositories that are due, and submit what is new; meant for cron."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from submissions.following.poll import PollReport, poll_followed
from vskill.environments import WorkerEnv
from vskill.management.environment_command import EnvironmentCommand
from vskill.processes.machine_faults import MachineFault
from vskill.processes.run_lock import AlreadyRunning

DONE, LOCKED = 0, 4
# The scheduler runs one command at a time, and recovery must not wait for this one for long.
SECONDS: Final = 20.0


class Command(EnvironmentCommand):
    """Ask the followed repositories that are due, at a pace, and submit their new commits."""

    all_by_default: ClassVar[bool] = True
    help = (
        "Look at the followed repositories that are due, or that a webhook named, and submit what is new. However "
        "often it runs, it looks at 0.4 repositories a second at most. Exit codes: 0 done or nothing to do, 4 another "
        "run holds the lock (nothing was done)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        parser.add_argument("--dry-run", action="store_true", help="list what is due, and contact nobody")
        self.add_json_argument(parser)
        parser.add_argument("--limit", type=int, help="look at at most this many (default: what the pace allows)")
        parser.add_argument(
            "--seconds", type=float, default=SECONDS, help="begin no other after this time (default %(default)g)"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Look in each environment and exit with the gravest code."""
        if options["limit"] is not None and options["limit"] < 1:
            raise CommandError("--limit is at least 1.")
        code = DONE
        with self.connections_given_back():
            for env in self.selected_environments(options):
                code = max(code, self._poll(env, options))
        if code != DONE:
            sys.exit(code)

    def _poll(self, env: WorkerEnv, options: Mapping[str, Any]) -> int:
        bar: tqdm[Any] = tqdm(
            desc=f"looking at followed repositories of {env.name}",
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
                report: PollReport = self.run_in(env, {**options, "progress": progress})
        except AlreadyRunning as error:
            self.stderr.write(str(error))
            return LOCKED
        except MachineFault as error:
            raise CommandError(f"{error} What was seen before that was kept.") from error
        self._print(report, options)
        return DONE

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> PollReport:  # noqa: ARG002 - it is the current one
        """Look in one environment."""
        return await poll_followed(
            limit=options["limit"],
            seconds=options["seconds"],
            dry_run=options["dry_run"],
            progress=options["progress"],
        )

    def _print(self, report: PollReport, options: Mapping[str, Any]) -> None:
        if options["as_json"]:
            self.stdout.write(json.dumps({**report.as_json(), "dryRun": options["dry_run"]}))
            return
        if options["dry_run"] or options["verbosity"] > 1:
            for url, said in report.repositories:
                self.stdout.write(f"{said:11} {url}")
        if options["verbosity"]:
            done = f"{report.looked} looked at, {report.submitted} skills submitted, {report.failed} failed"
            counted = f"{report.due} due" if options["dry_run"] else done
            rest = f"; {report.waiting} wait, {report.left} left for the next run" if not options["dry_run"] else ""
            self.stdout.write(f"{report.environment}: {report.followed} followed, {counted}{rest}")
