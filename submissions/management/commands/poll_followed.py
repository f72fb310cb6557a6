"""Look at the followed repositories that are due, and submit what is new; meant for cron."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from submissions.following.poll import PollReport, poll_followed
from submissions.management.looking_command import EXIT_CODES, LookingCommand
from vskill.environments import WorkerEnv


class Command(LookingCommand):
    """Ask the followed repositories that are due, at a pace, and submit their new commits."""

    looked_at: ClassVar[str] = "followed repositories"
    limit_in_words: ClassVar[str] = "default: what the pace allows"
    seconds: ClassVar[float] = 20.0
    help = (
        "Look at the followed repositories that are due, or that a webhook named, and submit what is new. However "
        f"often it runs, it looks at 0.4 repositories a second at most. {EXIT_CODES}"
    )

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> PollReport:  # noqa: ARG002 - it is the current one
        """Look in one environment."""
        return await poll_followed(**options["asked"])

    def tell(self, report: PollReport, options: Mapping[str, Any]) -> None:
        """Write what was looked at, and what came of it."""
        if options["dry_run"] or options["verbosity"] > 1:
            for url, said in report.repositories:
                self.stdout.write(f"{said:11} {url}")
        if options["verbosity"]:
            done = f"{report.looked} looked at, {report.submitted} skills submitted, {report.failed} failed"
            counted = f"{report.due} due" if options["dry_run"] else done
            rest = f"; {report.waiting} wait, {report.left} left for the next run" if not options["dry_run"] else ""
            self.stdout.write(f"{report.environment}: {report.followed} followed, {counted}{rest}")
