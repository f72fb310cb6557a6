"""Tell people what happened: webhooks that are due are sent, and sent again; meant for cron."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from submissions.management.looking_command import LookingCommand
from submissions.notifications.deliver import DeliverReport, deliver
from vskill.environments import WorkerEnv


class Command(LookingCommand):
    """Send the notifications that are due, many at once."""

    looked_at: ClassVar[str] = "notifications"
    limit_in_words: ClassVar[str] = "default: all that are due"
    seconds: ClassVar[float] = 20.0
    help = (
        "Tell people what happened: events leave the outbox, and deliveries that are due are attempted, at most two at "
        "once to one receiver. One that fails is attempted again, nine times in 27 hours, and is then marked as "
        "failed. Any number of runs share the work. Exit code: 0."
    )

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> DeliverReport:  # noqa: ARG002 - it is the current one
        """Deliver in one environment."""
        return await deliver(**options["asked"])

    def tell(self, report: DeliverReport, options: Mapping[str, Any]) -> None:
        """Write what was told, and what came of it."""
        if options["dry_run"]:
            self.stdout.write(f"{report.environment}: {report.events} events wait, {report.due} deliveries are due")
        elif options["verbosity"]:
            self.stdout.write(
                f"{report.environment}: {report.events} events, {report.delivered} delivered ({report.mails} mails), "
                f"{report.retried} to be "
                f"tried again, {report.failed} given up"
            )
