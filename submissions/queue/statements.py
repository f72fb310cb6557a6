"""The SQL of the queue, for both databases.

Written by hand because each operation is one statement: no other worker can come between the decision and the write,
and no transaction stays open between them. Every time is the database's own. Parameters are named after the columns
that they are compared with or written to; times are in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

from submissions.models import QueueMessage
from submissions.queue.newcomers import candidates
from submissions.queue.pause import PAUSE_KEY
from submissions.queue.turns import front_turn, turn_of
from vskill.kv.models import KVEntry
from vskill.kv.rows import among_rows
from vskill.kv.statements import statements

# Seconds of waiting that one step of priority is worth: a message of priority 10 is received before one of priority 0
# that has waited up to ten minutes longer, so that none starves.
AGING: Final = 60
# Where PostgreSQL notifies listeners when the transaction of a message commits.
CHANNEL: Final = "vskill_queue"

# The clock and not the time of the statement: a statement that waited for a lock would otherwise grant a lease that is
# half over, and honour one that has ended meanwhile.
_NOW: Final = {"sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')", "postgresql": "CLOCK_TIMESTAMP()"}
_NOW_PLUS: Final = {
    "sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW', PRINTF('%%+.3f seconds', {seconds}))",
    "postgresql": "CLOCK_TIMESTAMP() + MAKE_INTERVAL(secs => {seconds})",
}
_COLUMNS: Final = (
    "environment",
    "kind",
    "subject",
    "publisher",
    "weight",
    "body",
    "priority",
    "lease_token",
    "leased_by",
    "errors",
    "crashes",
    "last_error",
)
# A message that is available and still has a lease had a worker that did not settle it in time.
_CRASHES: Final = "crashes + (CASE WHEN leased_until IS NOT NULL THEN 1 ELSE 0 END)"
_NO_LEASE: Final = "lease_token = '', leased_by = '', leased_until = NULL"


def _offered(isolated: bool) -> str:
    """Return the condition that a message is one that its next crash would park, or that it is not and has a turn."""
    # The index over messages that have crashed before is small, and answers the first half.
    if isolated:
        return f"crashes > 0 AND {_CRASHES} >= %(max_crashes)s - 1"
    return f"turn IS NOT NULL AND (crashes = 0 OR {_CRASHES} < %(max_crashes)s - 1)"


@dataclass(frozen=True)
class QueueStatements:
    """The statements for one database vendor, ``sqlite`` or ``postgresql``."""

    vendor: str

    @property
    def table(self) -> str:
        """Return the name of the table, quoted."""
        return f'"{QueueMessage._meta.db_table}"'

    @property
    def now(self) -> str:
        """Return the SQL of the present time."""
        return _NOW[self.vendor]

    def after(self, seconds: str) -> str:
        """Return the SQL of the time ``seconds`` (SQL of a number) from now."""
        return _NOW_PLUS[self.vendor].format(seconds=seconds)

    def _insert(self, on_conflict: str) -> str:
        names = ", ".join((*_COLUMNS, "created_at", "available_at", "due_at", "turn"))
        turn = turn_of(self.vendor, self.table, publisher="%(publisher)s", weight="%(weight)s")
        insert = (
            f"INSERT INTO {self.table} ({names}) SELECT %(environment)s, %(kind)s, %(subject)s, %(publisher)s, "  # noqa: S608 - names of our own model, no input
            f"%(weight)s, %(body)s, %(priority)s, '', '', 0, 0, '', t.created_at, t.available_at, t.due_at, "
            f"CASE WHEN %(delay)s > 0 THEN NULL ELSE {turn} END "
            f"FROM (SELECT {self.now} AS created_at, {self.after('%(delay)s')} AS available_at, "
            f"{self.after('%(due)s')} AS due_at) AS t WHERE TRUE ON CONFLICT {on_conflict}"
        )
        if self.vendor == "postgresql":
            # Delivered to listeners at the commit, and once however many messages the transaction sends.
            notify = f"SELECT pg_notify('{CHANNEL}', environment) FROM sent"  # noqa: S608 - as above
            return f"WITH sent AS ({insert} RETURNING environment) {notify}"
        return insert

    @cached_property
    def send(self) -> str:
        """Insert a message, or nothing where one of that kind and subject exists; the row count tells which.

        Parameters: environment, kind, subject, publisher, weight, body, priority, delay, and due: the delay less what
        the priority is worth.
        """
        return self._insert("DO NOTHING")

    @cached_property
    def send_restarting(self) -> str:
        """Insert a message, or reset the one of that kind and subject; parameters: as ``send``."""
        reset = [name for name in _COLUMNS if name not in ("environment", "kind", "subject")]
        changes = ", ".join(f"{name} = excluded.{name}" for name in (*reset, "available_at", "due_at", "turn"))
        return self._insert(
            f"(environment, kind, subject) WHERE parked_at IS NULL DO UPDATE SET leased_until = NULL, {changes}"
        )

    @cached_property
    def _claimable(self) -> str:
        """Return the condition that a message may be claimed; parameter: environment."""
        # Asked within the claim: nothing is claimed after a pause, and no extra query asks for it.
        paused = (
            f"SELECT 1 FROM {KVEntry._meta.db_table} WHERE namespace = %(environment)s AND key = '{PAUSE_KEY}' "  # noqa: S608 - as above
            f"AND {statements(KVEntry, self.vendor).live}"
        )
        return (
            f"environment = %(environment)s AND parked_at IS NULL AND available_at <= {self.now} "
            f"AND (leased_until IS NULL OR leased_until <= {self.now}) AND NOT EXISTS ({paused})"
        )

    def any_claimable(self, *, isolated: bool, leaves_out: bool = False) -> str:
        """Select a row where ``claim`` would find a message; parameters: environment, max_crashes, without."""
        given, found = self._candidates(isolated, leaves_out)
        return f"WITH {given}one AS (SELECT 1 {found} LIMIT 1) SELECT 1 FROM one"  # noqa: S608 - as above

    def _candidates(self, isolated: bool, leaves_out: bool) -> tuple[str, str]:
        waits = f"{self._claimable} AND {_offered(isolated)}"
        return candidates(self.vendor, self.table, waits, leaves_out=leaves_out)

    @cached_property
    def any_without_turn(self) -> str:
        """Select one row where ``give_turns`` would find a message, else none; parameter: environment."""
        return f"SELECT 1 FROM {self.table} WHERE {self._without_turn} LIMIT 1"  # noqa: S608 - as above

    @property
    def _without_turn(self) -> str:
        return f"environment = %(environment)s AND parked_at IS NULL AND turn IS NULL AND available_at <= {self.now}"

    @cached_property
    def give_turns(self) -> str:
        """Give messages a turn whose delay has ended, the longest ago first, and return their ids.

        They join the end of their publisher's row, as if they were sent now: those that a publisher lets fail would
        otherwise come back with turns that all others have long had. Parameters: environment, limit.
        """
        lock = " FOR UPDATE SKIP LOCKED" if self.vendor == "postgresql" else ""
        turn = turn_of(
            self.vendor, self.table, publisher="t.publisher", weight="t.weight", place="t.place", front="front"
        )
        due = self.after(f"-{AGING} * priority")
        return (
            f"WITH found AS MATERIALIZED (SELECT id, publisher, weight, priority FROM {self.table} "  # noqa: S608 - as above
            f"WHERE {self._without_turn} ORDER BY available_at LIMIT %(limit)s{lock}), "
            f"front AS MATERIALIZED (SELECT {front_turn(self.table)} AS turn), "
            "t AS MATERIALIZED (SELECT id, publisher, weight, "
            "ROW_NUMBER() OVER (PARTITION BY publisher, priority ORDER BY id) AS place, "
            f"{due} AS due_at FROM found), "
            f"placed AS MATERIALIZED (SELECT id, due_at, {turn} AS turn FROM t) "
            f"UPDATE {self.table} SET turn = placed.turn, due_at = placed.due_at FROM placed "
            f"WHERE {self.table}.id = placed.id AND {self.table}.turn IS NULL RETURNING {self.table}.id"
        )

    def claim(self, *, isolated: bool, parks: bool, leaves_out: bool = False) -> str:
        """Lease the next messages and return them.

        ``isolated`` claims only messages that one more crash would park; otherwise only the others are claimed.
        ``parks`` turns a message whose worker has crashed ``max_crashes`` times into a dead letter and returns it with
        an empty token. A statement that parks names more columns, and a column that is named costs SQLite every index
        over it, whether or not its value changes. ``leaves_out`` leaves the publishers ``without`` out.

        Parameters: environment, max_crashes, limit, token, lease, worker, full_batch (fewer messages are claimed only
        when the oldest has waited), oldest (how far from now the oldest has to be, so a negative number), reason (with
        ``parks``), without (with ``leaves_out``; see ``submissions.queue.newcomers``).
        """
        lock = " FOR UPDATE SKIP LOCKED" if self.vendor == "postgresql" else ""
        worn_out = "leased_until IS NOT NULL AND crashes + 1 >= %(max_crashes)s"
        parking = (
            f"parked_at = CASE WHEN {worn_out} THEN {self.now} END, "
            f"last_error = CASE WHEN {worn_out} THEN %(reason)s ELSE last_error END, "
        )

        def unless_parked(value: str, parked: str) -> str:
            return f"CASE WHEN {worn_out} THEN {parked} ELSE {value} END" if parks else value

        given, found = self._candidates(isolated, leaves_out)
        return (
            f"WITH {given}next AS MATERIALIZED (SELECT id, available_at {found} "  # noqa: S608 - as above
            f"ORDER BY {'due_at, id' if isolated else 'turn, due_at, id'} LIMIT %(limit)s{lock}) "
            f"UPDATE {self.table} SET crashes = {_CRASHES}, "
            f"{parking if parks else ''}lease_token = {unless_parked('%(token)s', repr(''))}, "
            f"leased_until = {unless_parked(self.after('%(lease)s'), 'NULL')}, "
            f"leased_by = %(worker)s "
            "WHERE id IN (SELECT id FROM next) AND ((SELECT COUNT(*) FROM next) >= %(full_batch)s "
            f"OR (SELECT MIN(available_at) FROM next) <= {self.after('%(oldest)s')}) "
            "RETURNING id, kind, subject, body, errors, crashes, lease_token, turn, due_at, publisher"
        )

    @cached_property
    def _lease_valid(self) -> str:
        return f"parked_at IS NULL AND leased_until > {self.now}"

    @cached_property
    def _held(self) -> str:
        """Return the condition that a message is leased under its token; parameters: id, token."""
        return f"{self._lease_valid} AND id = %(id)s AND lease_token = %(token)s"

    @cached_property
    def _held_of_many(self) -> str:
        """Return the condition that a message is leased and its id and token are a row of ``v``."""
        return f"{self._lease_valid} AND {among_rows(self.vendor, 'id', 'lease_token')}"

    @cached_property
    def acknowledge(self) -> str:
        """Delete the messages of ``v`` (ids and tokens) that are leased, and return their ids."""
        return f"DELETE FROM {self.table} WHERE {self._held_of_many} RETURNING id"  # noqa: S608 - as above

    @cached_property
    def extend(self) -> str:
        """Renew the leases of the messages of ``v`` (ids and tokens) that are leased, and return their ids.

        Parameter: lease.
        """
        until = self.after("%(lease)s")
        return f"UPDATE {self.table} SET leased_until = {until} WHERE {self._held_of_many} RETURNING id"  # noqa: S608 - as above

    @cached_property
    def release(self) -> str:
        """End the lease of a message and count nothing; parameters: id, token."""
        return f"UPDATE {self.table} SET {_NO_LEASE} WHERE {self._held} RETURNING id"  # noqa: S608 - as above

    @cached_property
    def surrender(self) -> str:
        """Release a message even after its lease has ended, unless it was claimed again; parameters: id, token."""
        return (
            f"UPDATE {self.table} SET {_NO_LEASE} "  # noqa: S608 - as above
            "WHERE id = %(id)s AND lease_token = %(token)s AND parked_at IS NULL RETURNING id"
        )

    @cached_property
    def forgive_crash(self) -> str:
        """Take back the crash that was counted when a lease ended whose worker was alive.

        Parameters: id, and crashes: how many there were when that worker received the message.
        """
        return (
            f"UPDATE {self.table} SET crashes = crashes - 1 "  # noqa: S608 - as above
            "WHERE id = %(id)s AND crashes > %(crashes)s AND parked_at IS NULL RETURNING id"
        )

    @cached_property
    def workers(self) -> str:
        """Select the names of the workers that hold leases; parameter: environment."""
        leased = f"leased_until > {self.now} AND environment = %(environment)s"
        return f"SELECT DISTINCT leased_by FROM {self.table} WHERE {leased}"  # noqa: S608 - as above

    @cached_property
    def expire_leases(self) -> str:
        """End the leases of one worker now, and return the ids; parameters: environment, worker.

        A message that has crashed before keeps its lease. Otherwise a fault that kills every worker of a machine
        within a second could park, within seconds, every message that they touch.
        """
        return (
            f"UPDATE {self.table} SET leased_until = {self.now} WHERE leased_until > {self.now} "  # noqa: S608 - as above
            "AND environment = %(environment)s AND leased_by = %(worker)s AND crashes = 0 RETURNING id"
        )

    @cached_property
    def retry(self) -> str:
        """Count an error and make a message available again later, without a turn until then.

        Parameters: id, token, reason, delay.
        """
        return (
            f"UPDATE {self.table} SET {_NO_LEASE}, errors = errors + 1, last_error = %(reason)s, turn = NULL, "  # noqa: S608 - as above
            f"available_at = {self.after('%(delay)s')}, due_at = {self.after(f'%(delay)s - priority * {AGING}')} "
            f"WHERE {self._held} RETURNING id"
        )

    @cached_property
    def park(self) -> str:
        """Count an error and turn a message into a dead letter; parameters: id, token, reason."""
        return (
            f"UPDATE {self.table} SET lease_token = '', leased_until = NULL, errors = errors + 1, "  # noqa: S608 - as above
            f"last_error = %(reason)s, parked_at = {self.now} WHERE {self._held} RETURNING id"
        )


@cache
def queue_statements(vendor: str) -> QueueStatements:
    """Return the statements for one database vendor."""
    return QueueStatements(vendor)
