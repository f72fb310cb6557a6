"""Look whether the repositories of published skills still answer; meant for cron."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from submissions.management.looking_command import EXIT_CODES, LookingCommand
from submissions.repo_health.check import CheckReport, check_repositories
from vskill.environments import WorkerEnv


class Command(LookingCommand):
    """Look at the repositories that are due, one after another, and keep whether they answer."""

    looked_at: ClassVar[str] = "repositories"
    limit: ClassVar[int | None] = 100
    seconds: ClassVar[float] = 45.0
    help = (
        "Look whether the repositories of published skills still answer, and how old their newest commit is. "
        f"Those that answer are looked at once a day, the others sooner. {EXIT_CODES}"
    )

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> CheckReport:  # noqa: ARG002 - it is the current one
        """Check one environment."""
        return await check_repositories(**options["asked"])

    def tell(self, report: CheckReport, options: Mapping[str, Any]) -> None:
        """Write what was seen of each repository, or what is due."""
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
