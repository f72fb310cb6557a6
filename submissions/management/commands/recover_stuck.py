"""Put back what stopped moving; meant for cron."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar, Final

from django.conf import settings
from django.core.management.base import CommandParser
from django.db import DatabaseError

from submissions.recovery.sweep import RecoveryReport, Result, recover_stuck
from submissions.states import SWEPT_STATES, State
from vskill.environments import WorkerEnv
from vskill.management.environment_command import EnvironmentCommand
from vskill.management.progress import progress_bar
from vskill.processes.heartbeat import show_work_done
from vskill.processes.run_lock import AlreadyRunning
from vskill.unprepared_database import name_unprepared_database

DONE, NOT_RECOVERED, NOT_READ, LOCKED = 0, 2, 3, 4
# A run by cron counts as a living scheduler for some of its turns, and for long enough if nobody said how long one is.
SHOWN_AT_LEAST: Final = timedelta(minutes=15)
TURNS_SHOWN: Final = 3


class Command(EnvironmentCommand):
    """Find submissions whose worker is gone, and put them back into the queue or hand them to a person."""

    all_by_default: ClassVar[bool] = True
    help = (
        "Find submissions that stopped moving and put them back; after three recoveries they are held for an operator. "
        "Exit codes: 0 done or nothing to do, 2 some were not recovered, 3 some entries could not be read, "
        "4 another run holds the lock (nothing was done). Running it twice, or killing it half-way, changes nothing. "
        "With -v 0, as for cron, it prints nothing unless something failed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        parser.add_argument("--dry-run", action="store_true", help="say what would be done, and change nothing")
        self.add_json_argument(parser)
        parser.add_argument("--limit", type=int, help="move at most this many; the rest waits for the next run")
        parser.add_argument(
            "--older-than",
            type=float,
            metavar="SECONDS",
            default=settings.STUCK_THRESHOLD_SECONDS,
            help="how long without a move is stuck (default %(default)g)",
        )
        parser.add_argument(
            "--state", action="append", choices=sorted(SWEPT_STATES), help="look at this state only; may be repeated"
        )
        parser.add_argument(
            "--using",
            choices=["index", "scan"],
            default="index",
            help="index: ask the index and read the candidates; scan: read every submission, unreadable ones too",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Sweep each environment and exit with the gravest code."""
        code = DONE
        with self.connections_given_back():
            for env in self.selected_environments(options):
                code = max(code, self._sweep(env, options))
        if code != DONE:
            sys.exit(code)

    def _sweep(self, env: WorkerEnv, options: Mapping[str, Any]) -> int:
        try:
            with progress_bar(f"recovering {env.name}", quiet=options["as_json"]) as progress:
                report: RecoveryReport = self.run_in(env, {**options, "progress": progress})
        except AlreadyRunning as error:
            self.stderr.write(str(error))
            return LOCKED
        except DatabaseError as error:
            name_unprepared_database(error)
            self.stderr.write(f"{env.name} could not be swept, its database does not answer: {error}")
            return NOT_READ
        self._print(report, options)
        if report.counts.failed:
            return NOT_READ
        return NOT_RECOVERED if report.count(Result.FAILED) else DONE

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> RecoveryReport:
        """Sweep one environment, and show that it was swept where no scheduler does."""
        report = await recover_stuck(
            env,
            older_than=timedelta(seconds=options["older_than"]),
            states=frozenset(State(name) for name in options["state"]) if options["state"] else SWEPT_STATES,
            using=options["using"],
            limit=options["limit"],
            dry_run=options["dry_run"],
            progress=options["progress"],
        )
        if not options["dry_run"]:
            ttl = max(SHOWN_AT_LEAST, timedelta(seconds=TURNS_SHOWN * settings.RECOVERY_INTERVAL))
            await show_work_done("scheduler", env, "recover_stuck", ttl)
        return report

    def _print(self, report: RecoveryReport, options: Mapping[str, Any]) -> None:
        if options["as_json"]:
            self.stdout.write(json.dumps({**report.as_json(), "dryRun": options["dry_run"]}))
            return
        if options["verbosity"] > 1 or options["dry_run"]:
            for stuck, result, reason in report.results:
                minutes = stuck.stuck_for / timedelta(minutes=1)
                line = f"{stuck.id}  {stuck.state}  {minutes:.1f} min  {stuck.skill_name or stuck.repo_url}  {result}"
                self.stdout.write(f"{line}: {reason}" if reason else line)
        ends = {result: report.count(result) for result in Result}
        ends_in_words = [f"{count} {result.replace('_', ' ')}" for result, count in ends.items() if count]
        counts = report.counts
        for name in ("missing", "malformed", "unreadable", "timed_out"):
            if count := getattr(counts, name):
                ends_in_words.append(f"{count} {name.replace('_', ' ')}")
        if report.left:
            ends_in_words.append(f"{report.left} left for the next run")
        failed = counts.failed or report.count(Result.FAILED)
        if failed or options["verbosity"]:
            self.stdout.write(
                f"{report.environment}: {', '.join(ends_in_words) or 'nothing is stuck'} ({counts.read} read)"
            )
        for key in report.unreadable[:10]:
            self.stderr.write(f"could not be read, left as it is: {key}")
