"""Run the scanner that comes with the product: semgrep with our own rules, asked over HTTP."""

from __future__ import annotations

import asyncio
import os
from typing import Any, ClassVar, Final

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from submissions.external_scans.provider.server import dispatches
from submissions.external_scans.provider.worker import Job, scan
from submissions.external_scans.results import SECRET
from vskill.management.environment_command import EnvironmentCommand
from vskill.processes.stop_signals import StopSignals

MOST_WAITING: Final = 200


class Command(EnvironmentCommand):
    """Take dispatches of the environments of this configuration, scan, and post the results back."""

    all_by_default: ClassVar[bool] = True
    help = "Take dispatches on HOST:PORT, scan what they name with semgrep, and post the results back, until stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        parser.add_argument("--listen", metavar="HOST:PORT", default="127.0.0.1:8200", help="default %(default)s")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Serve until a signal stops it; refuse to start without semgrep, a secret or an address."""
        host, _, port = options["listen"].rpartition(":")
        if not host or not port.isdigit():
            raise CommandError("--listen is HOST:PORT. Nothing was started.")
        if not os.access(settings.SEMGREP, os.X_OK):
            raise CommandError(
                f"There is no program {settings.SEMGREP}. Nothing was started. "
                "Run `make engines`, or set VSKILL_SEMGREP."
            )
        secrets = {
            env.name: env.secret(SECRET) for env in self.selected_environments(options) if env.secrets.get(SECRET)
        }
        if not secrets:
            raise CommandError("No environment has a secret 'external_scans'. Nothing was started.")
        with StopSignals() as signals:
            async_to_sync(self._serve)(host.strip("[]"), int(port), secrets, signals)

    async def _serve(self, host: str, port: int, secrets: dict[str, str], signals: StopSignals) -> None:
        stop = signals.event()
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[Job] = asyncio.Queue()

        def take(job: Job) -> bool:
            if waiting.qsize() >= MOST_WAITING:
                return False
            loop.call_soon_threadsafe(waiting.put_nowait, job)
            return True

        with dispatches(host, port, secrets, take) as bound:
            self.stdout.write(f"semgrep scanner: listening on {host}:{bound}")
            self.stdout.flush()
            working = asyncio.create_task(self._work(waiting))
            await asyncio.wait([working, asyncio.create_task(stop.wait())], return_when=asyncio.FIRST_COMPLETED)
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def _work(self, waiting: asyncio.Queue[Job]) -> None:
        while True:
            await scan(await waiting.get(), settings.SEMGREP)
