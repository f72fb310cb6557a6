"""Look for disagreements in the store, and mend them on request."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from django.core.management.base import CommandParser

from submissions.recovery.verify_store import StoreReport, verify_store
from vskill.environments import WorkerEnv
from vskill.management.environment_command import EnvironmentCommand

CONSISTENT, LEFT = 0, 2


class Command(EnvironmentCommand):
    """Find entries, messages and aliases that disagree with one another, and mend them where that is asked for."""

    all_by_default: ClassVar[bool] = True
    help = (
        "Find messages without a submission, submissions without a message, aliases that lead nowhere, entries whose "
        "columns disagree with their value, values that cannot be read, scans of submissions that are gone, "
        "counts of lists, an index of the search, capabilities and facets of skills that are wrong, versions that were "
        "not signed, a log of verdicts that disagrees with itself or with its signed heads, and damaged files of the "
        "database. Changes nothing without --repair. "
        "Exit codes: 0 nothing is wrong, or all of it was mended; 2 something is left."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        parser.add_argument("--repair", action="store_true", help="mend what can be mended without guessing")
        self.add_json_argument(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Verify each environment and exit with the gravest code."""
        environments = self.selected_environments(options)
        # Else each table that is not there would be reported as one that cannot be read.
        self.refuse_unprepared(environments)
        with self.connections_given_back():
            reports: list[StoreReport] = [self.run_in(env, options) for env in environments]
        if any(report.left for report in reports):
            sys.exit(LEFT)

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> StoreReport:
        """Verify one environment and print what was found."""
        report = await verify_store(env, repair=options["repair"])
        if options["as_json"]:
            self.stdout.write(json.dumps(report.as_json()))
            return report
        for problem in report.problems:
            mark = "mended" if problem.repaired else "LEFT" if options["repair"] else "found"
            self.stdout.write(f"{env.name}: {mark}: {problem.kind} {problem.subject}: {problem.detail}")
        found, left = len(report.problems), len(report.left)
        summary = f"{found} found, {found - left} mended, {left} left" if found else "nothing is wrong"
        self.stdout.write(f"{env.name}: {summary} ({report.read} entries read)")
        return report
