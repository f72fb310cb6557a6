"""One run: fetch again what is due, at most one request at a time to each host, and write what was found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

from marketplace.reference_changes import (
    ACTOR,
    Address,
    due_addresses,
    note_failed,
    note_found,
    put_off,
    read_due,
    repositories_using,
)
from submissions.source.fetching import source_policy
from submissions.source.pinning import may_lead_to_private
from submissions.source.urls import SourcePolicy
from submissions.watching.fetch_address import AddressLimits, NotFetched, fetch_address
from submissions.watching.host_turns import rest, take_turn
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now, isoformat
from vskill.kv.errors import VersionConflict
from vskill.kv.threads import readers, writers
from vskill.processes.heartbeat import process_name
from vskill.processes.last_runs import note_run

_HOSTS_AT_ONCE: Final = 6
# Longer than any fetch takes.
_SPARE: Final = timedelta(seconds=30)


@dataclass(frozen=True)
class Pace:
    """How much one run does: at most ``limit`` addresses in ``seconds``, with ``pause`` between requests to a host.

    ``interval`` is the time until an address is fetched again.
    """

    limit: int = 200
    seconds: float = 40.0
    pause: timedelta = timedelta(seconds=2)
    interval: timedelta = timedelta(days=1)
    fetch: AddressLimits = field(default_factory=AddressLimits)


@dataclass
class WatchReport:
    """What a run did: ``due`` addresses, of which some were ``fetched``, ``failed``, are ``unused`` or were ``left``.

    ``changed`` counts versions that were flagged. ``addresses`` are the due ones of a dry run, else those that failed
    with the reason.
    """

    environment: str
    due: int = 0
    fetched: int = 0
    failed: int = 0
    unused: int = 0
    left: int = 0
    changed: int = 0
    addresses: list[list[str]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return plain values for ``json.dumps``."""
        return asdict(self)


async def watch_references(
    env: WorkerEnv,
    pace: Pace,
    *,
    dry_run: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> WatchReport:
    """Fetch again the addresses of ``env`` that are due, within ``pace``, and return what was done.

    With ``dry_run`` nothing is fetched or written, and the report names what is due. ``progress`` is called with the
    addresses that are done and all that are due. Raises ``MachineFault`` and the errors of the database.
    """
    due = await readers.run(due_addresses, env, pace.limit)
    report = WatchReport(env.name, due=len(due))
    if dry_run:
        report.addresses = [[url, "due"] for _key, _host, url in due]
        return report
    started = isoformat(await readers.run(database_now, env.database))
    by_host: dict[str, list[str]] = {}
    for key, host, _url in due:
        by_host.setdefault(host, []).append(key)
    run = _Run(env, pace, report, progress)
    async with asyncio.TaskGroup() as tasks:
        for host, keys in by_host.items():
            tasks.create_task(run.host(host, keys))
    kept = {key: value for key, value in report.as_json().items() if key != "addresses"}
    ended = await readers.run(database_now, env.database)
    await note_run(env, ACTOR, {**kept, "startedAt": started, "holder": process_name()}, ended_at=ended)
    return report


class _Run:
    """One run over the addresses that are due."""

    def __init__(self, env: WorkerEnv, pace: Pace, report: WatchReport, progress: Callable[[int, int], None]) -> None:
        self._env, self._pace, self._report, self._progress = env, pace, report, progress
        self._policy: SourcePolicy = source_policy(env)
        self._slots = asyncio.Semaphore(_HOSTS_AT_ONCE)
        self._ends_at = monotonic() + pace.seconds
        self._done = 0

    async def host(self, host: str, keys: list[str]) -> None:
        """Fetch the addresses of one host, one after the other."""
        async with self._slots:
            for number, key in enumerate(keys):
                if number:
                    await asyncio.sleep(self._pace.pause.total_seconds())
                if monotonic() >= self._ends_at or not await self._in_turn(host, key):
                    # They stay due, for the next run or for the process that has the turn.
                    self._report.left += len(keys) - number
                    return
                self._done += 1
                self._progress(self._done, self._report.due)

    async def _in_turn(self, host: str, key: str) -> bool:
        lease = timedelta(seconds=self._pace.fetch.seconds) + _SPARE
        turn = await take_turn(self._env, host, lease)
        if turn is None:
            return False
        try:
            await self._address(key)
        except VersionConflict:
            # Another process wrote it meanwhile, which has then done the work.
            self._report.left += 1
        finally:
            await rest(self._env, host, turn, self._pace.pause)
        return True

    async def _address(self, key: str) -> None:
        env, report, interval = self._env, self._report, self._pace.interval
        address = await readers.run(read_due, env, key)
        if address is None:
            return
        repositories = await readers.run(repositories_using, env, address)
        if not repositories:
            await writers.run(put_off, env, address, interval)
            report.unused += 1
            return
        found = await self._fetch(address, repositories)
        if isinstance(found, NotFetched):
            await writers.run(note_failed, env, address, found.reason, interval)
            report.failed += 1
            report.addresses.append([address.url, found.reason])
            return
        report.changed += await writers.run(note_found, env, address, found, interval)
        report.fetched += 1

    async def _fetch(self, address: Address, repositories: set[str]) -> Any:
        # A public skill must not send this server to hosts that only people inside can reach.
        inside = any(self._is_inside(repository) for repository in repositories)
        return await fetch_address(
            address.url, address.known, policy=self._policy, may_be_private=inside, limits=self._pace.fetch
        )

    def _is_inside(self, repository: str) -> bool:
        parts = urlsplit(repository)
        return parts.scheme == "https" and may_lead_to_private(parts.hostname or "", parts.port, self._policy)
