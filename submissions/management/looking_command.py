"""What commands of cron share that look at the repositories that are due: bounds, progress, one run at a time."""

from __future__ import annotations

import json
import sys
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django.core.management.base import CommandError, CommandParser

from vskill.environments import WorkerEnv
from vskill.management.environment_command import EnvironmentCommand
from vskill.management.progress import progress_bar
from vskill.processes.machine_faults import MachineFault
from vskill.processes.run_lock import AlreadyRunning

DONE, LOCKED = 0, 4
EXIT_CODES: Final = "Exit codes: 0 done or nothing to do, 4 another run holds the lock (nothing was done)."


class LookingCommand(EnvironmentCommand):
    """Look at what is due in each environment; a subclass says what that is and tells what was seen."""

    all_by_default: ClassVar[bool] = True
    looked_at: ClassVar[str]
    """What progress says is looked at."""
    limit: ClassVar[int | None] = None
    limit_in_words: ClassVar[str] = "default %(default)s"
    seconds: ClassVar[float]
    """The scheduler runs one command at a time, and recovery must not wait for this one for long."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        parser.add_argument("--dry-run", action="store_true", help="list what is due, and contact nobody")
        self.add_json_argument(parser)
        limit = f"look at at most this many ({self.limit_in_words})"
        parser.add_argument("--limit", type=int, default=self.limit, help=limit)
        parser.add_argument(
            "--seconds", type=float, default=self.seconds, help="begin no other after this time (default %(default)g)"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Look in each environment and exit with the gravest code."""
        if options["limit"] is not None and options["limit"] < 1:
            raise CommandError("--limit is at least 1.")
        code = DONE
        with self.connections_given_back():
            for env in self.selected_environments(options):
                code = max(code, self._look(env, options))
        if code != DONE:
            sys.exit(code)

    def _look(self, env: WorkerEnv, options: Mapping[str, Any]) -> int:
        asked = {name: options[name] for name in ("limit", "seconds", "dry_run")}
        quiet = options["as_json"] or not options["verbosity"]
        try:
            with progress_bar(f"looking at {self.looked_at} of {env.name}", quiet=quiet) as progress:
                report = self.run_in(env, {**options, "asked": {**asked, "progress": progress}})
        except AlreadyRunning as error:
            self.stderr.write(str(error))
            return LOCKED
        except MachineFault as error:
            raise CommandError(f"{error} What was seen before that was kept.") from error
        if options["as_json"]:
            self.stdout.write(json.dumps({**report.as_json(), "dryRun": options["dry_run"]}))
        else:
            self.tell(report, options)
        return DONE

    @abstractmethod
    def tell(self, report: Any, options: Mapping[str, Any]) -> None:
        """Write what a run came to, for people; ``report`` is what ``work`` returned."""
