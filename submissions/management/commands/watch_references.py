"""Fetch again what published skills refer to; meant for cron."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.core.management.base import CommandParser

from submissions.watching.watch import Pace, WatchReport, watch_references
from vskill.environments import WorkerEnv
from vskill.management.environment_command import EnvironmentCommand
from vskill.management.progress import progress_bar


class Command(EnvironmentCommand):
    """Fetch again what published skills refer to, and flag those for which it has changed since their check."""

    all_by_default: ClassVar[bool] = True
    help = (
        "Fetch again each address that a published skill refers to and that no hash pins, once a day and one request "
        "at a time to each host; flag the skills for which it has changed since their check. A fetch that fails is "
        "counted and is no change. Several may run at once, and a run that is killed is made up for by the next. With "
        "-v 0, as for cron, it prints nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        parser.add_argument("--dry-run", action="store_true", help="say what is due, and fetch nothing")
        self.add_json_argument(parser)
        parser.add_argument(
            "--limit", type=int, default=settings.WATCH_LIMIT, help="fetch at most this many (default %(default)d)"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Watch the references of each environment."""
        with self.connections_given_back():
            for env in self.selected_environments(options):
                with progress_bar(f"watching {env.name}", quiet=options["as_json"]) as progress:
                    report: WatchReport = self.run_in(env, {**options, "progress": progress})
                self._print(report, options)

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> WatchReport:
        """Watch the references of one environment."""
        pace = Pace(
            limit=max(0, options["limit"]),
            seconds=settings.WATCH_SECONDS,
            pause=timedelta(seconds=settings.WATCH_PAUSE),
            interval=timedelta(seconds=settings.WATCH_INTERVAL),
        )
        return await watch_references(env, pace, dry_run=options["dry_run"], progress=options["progress"])

    def _print(self, report: WatchReport, options: Mapping[str, Any]) -> None:
        if options["as_json"]:
            self.stdout.write(json.dumps({**report.as_json(), "dryRun": options["dry_run"]}))
            return
        if options["verbosity"] > 1 or options["dry_run"]:
            for url, said in report.addresses:
                self.stdout.write(f"{url}: {said}")
        if options["dry_run"]:
            self.stdout.write(f"{report.environment}: {report.due} due; nothing was fetched")
        elif options["verbosity"]:
            self.stdout.write(
                f"{report.environment}: {report.fetched} fetched, {report.changed} versions flagged, {report.failed} "
                f"failed, {report.unused} unused, {report.left} left ({report.due} due)"
            )
