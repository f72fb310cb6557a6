"""Print the status of the queue."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from django.core.management.base import CommandParser

from submissions.queue.database import get_queue
from submissions.queue.pause import get_pause
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat
from vskill.management.environment_command import EnvironmentCommand
from vskill.processes.heartbeat import living


class Command(EnvironmentCommand):
    """Count the messages and the live consumers of each environment."""

    all_by_default: ClassVar[bool] = True
    help = "Count what waits, is delayed, is in work and is parked in the queue of each environment."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        self.add_json_argument(parser)

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Print the status of one environment."""
        status = await get_queue(env).status(env.name)
        paused = await get_pause(env)
        consumers = await living(env, "consumer")
        if options["as_json"]:
            document = {
                "environment": env.name,
                "waiting": status.waiting,
                "delayed": status.delayed,
                "leased": status.leased,
                "parked": status.parked,
                "oldestAt": isoformat(status.oldest_at) if status.oldest_at else None,
                "pausedUntil": isoformat(paused.until) if paused and paused.until else None,
                "consumers": consumers,
            }
            self.stdout.write(json.dumps(document))
            return
        line = (
            f"{env.name}: {status.waiting} waiting, {status.delayed} delayed, {status.leased} in work, "
            f"{status.parked} parked; {len(consumers)} consumer{'' if len(consumers) == 1 else 's'}"
        )
        if paused is not None:
            until = f"until {isoformat(paused.until)} " if paused.until else ""
            line += f"; paused {until}by {paused.who}: {paused.why}"
        self.stdout.write(line)
        if status.waiting and not consumers:
            self.stderr.write("Work waits and no consumer lives: start one with 'manage.py consume'.")
