"""Run the recurring commands, for installations without cron."""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import Any, ClassVar

from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import close_old_connections

from vskill.environments import WorkerEnv
from vskill.management.environment_command import EnvironmentCommand
from vskill.processes.heartbeat import heartbeat
from vskill.processes.stop_signals import StopSignals

logger = logging.getLogger(__name__)


class Command(EnvironmentCommand):
    """Run each command of ``VSKILL_SCHEDULE`` at its interval."""

    all_by_default: ClassVar[bool] = True
    help = "Run recovery and the other recurring commands until told to stop; a server with cron does not need it."

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the schedule until a signal stops it."""
        environments = self.selected_environments(options)
        self.refuse_unprepared(environments)
        with self.connections_given_back(), StopSignals() as signals:
            async_to_sync(self._schedule)(environments, signals)

    async def _schedule(self, environments: list[WorkerEnv], signals: StopSignals) -> None:
        stop = signals.event()
        async with heartbeat("scheduler", environments):
            due = dict.fromkeys(settings.VSKILL_SCHEDULE, 0.0)
            while not stop.is_set():
                for name, interval in settings.VSKILL_SCHEDULE.items():
                    if monotonic() >= due[name]:
                        await sync_to_async(run_command, thread_sensitive=False)(name)
                        due[name] = monotonic() + interval
                waiting = max(0.0, min(due.values(), default=monotonic() + 60.0) - monotonic())
                try:
                    async with asyncio.timeout(waiting):
                        await stop.wait()
                except TimeoutError:
                    continue


def run_command(name: str) -> None:
    """Run the command called ``name``; its errors are logged and not raised, so that the schedule goes on."""
    try:
        call_command(name, verbosity=0)
    except SystemExit as ended:
        if ended.code:
            logger.warning("%s ended with code %s", name, ended.code)
    except CommandError as error:
        logger.error("%s: %s", name, error)
    except Exception:
        logger.exception("%s failed", name)
    finally:
        close_old_connections()
