"""End a pause of the queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from submissions.queue.pause import resume
from vskill.environments import WorkerEnv
from vskill.kv.threads import writers
from vskill.management.environment_command import EnvironmentCommand


class Command(EnvironmentCommand):
    """End the pause, so that consumers take messages again."""

    help = "End the pause of the queue. Without a pause it changes nothing and says so."

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Resume one environment."""
        ended = await writers.run(resume, env)
        if options["verbosity"]:
            self.stdout.write(f"{env.name} takes work again." if ended else f"{env.name} was not paused.")
