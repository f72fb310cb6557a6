"""Pause the queue."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser

from submissions.queue.pause import DEFAULT_PAUSE, PauseTooLong, pause
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat
from vskill.kv.threads import writers
from vskill.management.environment_command import EnvironmentCommand


class Command(EnvironmentCommand):
    """Stop consumers from taking messages until the pause expires."""

    help = (
        "Pause the queue: what is submitted is kept, nothing new is taken. The pause ends by itself, or with 'resume'."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        parser.add_argument("reason", help="why, for everybody who sees the queue standing still")
        default = DEFAULT_PAUSE / timedelta(minutes=1)
        parser.add_argument(
            "--minutes", type=float, default=default, help="how long, at most 1440 (default %(default)g)"
        )

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Pause one environment."""
        try:
            paused = await writers.run(
                pause, env, who=getpass.getuser(), why=options["reason"], duration=timedelta(minutes=options["minutes"])
            )
        except PauseTooLong as error:
            raise CommandError(str(error)) from error
        if paused.until is not None:
            self.stdout.write(
                f"{env.name} is paused until {isoformat(paused.until)}. 'manage.py resume' ends it earlier."
            )
