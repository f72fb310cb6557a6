"""Run a consumer of the submission queue."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from submissions.pipeline.handlers import make_handlers
from submissions.queue.consumer import Consumer, ConsumerOptions
from submissions.queue.process import isolated_command, run_process
from submissions.queue.worker_names import worker_name
from submissions.sandbox.network import can_cut_network
from vskill.environments import WorkerEnv
from vskill.management.environment_command import EnvironmentCommand
from vskill.processes.heartbeat import heartbeat
from vskill.processes.stop_signals import StopSignals

logger = logging.getLogger(__name__)


async def _run_isolated(env: WorkerEnv) -> None:
    await run_process(isolated_command(env))


async def _engines_without_network() -> bool:
    """Find out and log whether scanning engines are cut off from the network on this kernel."""
    try:
        cut = await can_cut_network()
    except OSError as error:
        logger.warning("whether scanning engines can be cut off from the network was not found out: %s", error)
        return False
    if cut:
        logger.info("scanning engines are cut off from the network")
    else:
        logger.warning(
            "scanning engines are not cut off from the network: this system permits no network namespace "
            "(unshare --net --map-root-user true)"
        )
    return cut


class Command(EnvironmentCommand):
    """Take submissions from the queue and verify them until told to stop."""

    all_by_default: ClassVar[bool] = True
    help = (
        "Take submissions from the queue and verify them. Several of these may run. SIGTERM or Ctrl-C: take nothing "
        "new, finish or give back what is in work, and exit 0. A second signal exits at once, and the work comes back "
        "by itself. Exit code 1: with --once, no work could be taken from an environment."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        parser.add_argument(
            "--max-batch-size",
            type=int,
            default=settings.QUEUE_MAX_BATCH_SIZE,
            help="messages of a batch (default %(default)s)",
        )
        parser.add_argument(
            "--max-concurrency",
            type=int,
            default=settings.QUEUE_MAX_CONCURRENCY,
            help="batches in flight at once (default %(default)s)",
        )
        parser.add_argument(
            "--once", action="store_true", help="take as much as there is place for, handle it, and end"
        )
        parser.add_argument(
            "--drain", action="store_true", help="end when nothing is left but what is paused or parked"
        )

        parser.add_argument(
            "--isolated",
            action="store_true",
            help="take only messages that one more crash of their worker would park, one after another, and end; "
            "consumers start this by themselves",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Consume until done or told to stop."""
        if options["max_batch_size"] < 1 or options["max_concurrency"] < 1:
            raise CommandError("Nothing was taken: --max-batch-size and --max-concurrency are at least 1.")
        consumer_options = ConsumerOptions(
            max_batch_size=options["max_batch_size"],
            max_concurrency=options["max_concurrency"],
            worker=worker_name(),
            once=options["once"],
            drain=options["drain"],
            isolated_only=options["isolated"],
            run_isolated=None if options["isolated"] else _run_isolated,
        )
        environments = self.selected_environments(options)
        self.refuse_unprepared(environments)
        consumer = Consumer(environments, make_handlers(), consumer_options)
        with self.connections_given_back(), StopSignals() as signals:
            async_to_sync(self._consume)(consumer, environments, signals, isolated=options["isolated"])
        ends = str(consumer.report) if consumer.report.ends else "there was no work"
        self.stdout.write(f"consumer ended: {ends}")
        if options["once"] and consumer.receive_errors:
            failed = "; ".join(f"{name}: {error}" for name, error in consumer.receive_errors.items())
            raise CommandError(f"No work could be taken from {failed}")

    async def _consume(
        self, consumer: Consumer, environments: list[WorkerEnv], signals: StopSignals, *, isolated: bool
    ) -> None:
        stop = signals.event()
        details = {} if isolated else {"enginesWithoutNetwork": await _engines_without_network()}
        async with heartbeat("consumer", environments, fault=lambda: consumer.fault, details=details):
            logger.info("consumer of %s is ready", ", ".join(env.name for env in environments))
            await consumer.run(stop)
