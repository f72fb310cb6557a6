"""Follow a job of many submissions from the command line, or stop it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser

from submissions.intake import IntakeBusy
from submissions.job_presentation import progress_as_json
from submissions.jobs.progress import progress_of
from submissions.jobs.records import JobNotFound, get_job
from submissions.jobs.work import stop_job
from vskill.accounts.audiences import every_audience, seen_as
from vskill.environments import WorkerEnv
from vskill.kv.threads import readers, writers
from vskill.management.environment_command import EnvironmentCommand


class Command(EnvironmentCommand):
    """Say how far a job is and where its skills stand, and stop it where that is asked for."""

    help = (
        "Say how far a job of many submissions is; with --stop withdraw what waits. What is being checked or done "
        "stays. Exit code 0: it was found; 1: there is no such job, or it could not be stopped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        parser.add_argument("job", help="id of the job: job_...")
        parser.add_argument("--stop", action="store_true", help="stop it; a consumer then withdraws what waits")
        self.add_json_argument(parser, documents="one JSON document, with every skill")

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Look at the job in one environment."""
        try:
            if options["stop"]:
                await writers.run(stop_job, env, options["job"])
            job = await get_job(env, options["job"])
        except (JobNotFound, IntakeBusy) as error:
            raise CommandError(str(error)) from error
        # Who works on the server is shown what is for anybody.
        with seen_as(await readers.run(every_audience, env)):
            progress = await progress_of(env, job, size=job.total)
        if options["as_json"]:
            self.stdout.write(json.dumps(await readers.run(progress_as_json, env, job, progress)))
            return
        self.stdout.write(f"{job.id}: {job.state}, {progress.handled:,} of {job.total:,} handled")
        for standing, count in sorted(progress.standings.items()):
            self.stdout.write(f"  {count:,} {standing.replace('_', ' ')}")
        if job.failure:
            self.stdout.write(f"  it does not go on by itself: {job.failure}")
