"""Bring the recent downloads of every skill and the counts of lists up to date."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from marketplace.skills.count_check import recount
from marketplace.skills.downloads import RECENT_DAYS, forget_clients, recount_recent
from marketplace.skills.search_check import renew_positions
from vskill.environments import WorkerEnv
from vskill.kv.threads import writers
from vskill.management.environment_command import EnvironmentCommand


class Command(EnvironmentCommand):
    """Take the days that are past out of the recent downloads, and check and add up the counts of lists."""

    all_by_default: ClassVar[bool] = True
    help = (
        f"Set the recent downloads of every skill, by which trending ones are found, to those of {RECENT_DAYS} days. "
        "Downloads are added as they happen; days that are past go only by this. The counts of lists are compared with "
        "the skills, and mended where something wrote past them, such as an earlier release. "
        "Search reads much downloaded skills first, and is told of the downloads here."
    )

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Correct the skills of one environment."""
        changed = await writers.run(recount_recent, env)
        if options["verbosity"] > 1 or (options["verbosity"] and changed):
            self.stdout.write(f"{env.name}: recent downloads corrected: {changed} of its skills")
        await writers.run(forget_clients, env)
        wrong = await writers.run(recount, env)
        if options["verbosity"] > 1 or (options["verbosity"] and wrong):
            self.stdout.write(f"{env.name}: counts of lists corrected: {wrong}")
        moved = await writers.run(renew_positions, env)
        if options["verbosity"] > 1:
            self.stdout.write(f"{env.name}: skills whose place in the search was renewed: {moved}")
