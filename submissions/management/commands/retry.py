"""Let dead work be done again."""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping
from typing import Any, ClassVar

from django.core.management.base import CommandError, CommandParser

from submissions.operations import retry
from submissions.recovery.dead_letters import DeadLetter, dead_letters
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.threads import readers, writers
from vskill.management.environment_command import EnvironmentCommand


class Command(EnvironmentCommand):
    """List what the queue and recovery have given up, and put it back on request."""

    all_by_default: ClassVar[bool] = True
    help = (
        "Without arguments: list dead work, that is messages that were parked and submissions that recovery gave up. "
        "With ids (sub_...) or --all: put it back into the queue, its failures forgotten."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        parser.add_argument("subject", nargs="*", help="what to retry: the id of a submission, as the list shows it")
        parser.add_argument("--all", action="store_true", dest="everything", help="retry everything in the list")
        parser.add_argument("--reason", default="retried by an operator", help="kept in the history of each")
        self.add_json_argument(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        """List or retry in each environment; an id that is in none of them is an error."""
        wanted = set(options["subject"])
        if wanted and options["everything"]:
            raise CommandError("Nothing was done: name what to retry, or say --all, not both.")
        found: set[str] = set()
        with self.connections_given_back():
            for env in self.selected_environments(options):
                found |= self.run_in(env, options)
        if missing := sorted(wanted - found):
            raise CommandError(f"There is no dead work about {', '.join(missing)}; 'manage.py retry' lists what is.")

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> set[str]:
        """List or retry in one environment, and return the subjects of its dead work."""
        every = await readers.run(dead_letters, env)
        wanted = [one for one in every if options["everything"] or one.subject in options["subject"]]
        ends = {one: await self._retry(env, one, options["reason"]) for one in wanted}
        shown = every if not wanted and not options["subject"] else wanted
        if options["as_json"]:
            work = [
                {"kind": one.kind, "subject": one.subject, "reason": one.reason, "result": ends.get(one, "listed")}
                for one in shown
            ]
            self.stdout.write(json.dumps({"environment": env.name, "work": work}))
        else:
            for one in shown:
                end = f"{ends[one]}: " if one in ends else ""
                self.stdout.write(f"{env.name}: {one.subject} ({one.kind}) {end}{one.reason}")
            if not every:
                self.stdout.write(f"{env.name}: no dead work")
        return {one.subject for one in every}

    async def _retry(self, env: WorkerEnv, letter: DeadLetter, reason: str) -> str:
        try:
            again = await writers.run(retry, env, letter.kind, letter.subject, actor=getpass.getuser(), reason=reason)
        except VskillError as error:
            return f"not retried, {error}"
        return "retried" if again else "nothing left to do"
