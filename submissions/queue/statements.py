"""The SQL of the queue, in the words of both databases.

Written by hand and not by the ORM because each of these is one statement: what is decided and what is written cannot
be told apart by another claimer, and no transaction stays open between them. Every time is the database's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

from submissions.models import QueueMessage
from submissions.queue.pause import PAUSE_KEY
from vskill.kv.models import KVEntry
from vskill.kv.rows import among_rows
from vskill.kv.statements import statements

# How many seconds of waiting one step of priority is worth: a message of priority 10 goes before one of priority 0
# that has waited up to ten minutes longer, and none waits for ever.
AGING: Final = 60
# Where PostgreSQL tells listeners, when a message is committed, that there is one.
CHANNEL: Final = "vskill_queue"

# PostgreSQL's clock, and not the time of the statement: one that has waited for a lock would grant a lease that is half
# over, and take one for valid that has ended meanwhile.
_NOW: Final = {"sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')", "postgresql": "CLOCK_TIMESTAMP()"}
_NOW_PLUS: Final = {
    "sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW', PRINTF('%%+.3f seconds', {seconds}))",
    "postgresql": "CLOCK_TIMESTAMP() + MAKE_INTERVAL(secs => {seconds})",
}
_NEW: Final = (
    "environment",
    "kind",
    "subject",
    "body",
    "priority",
    "lease_token",
    "leased_by",
    "errors",
    "crashes",
    "last_error",
)
# A row that still has a lease when it is ready had a worker that did not come back in time.
_CRASHED: Final = "crashes + (CASE WHEN leased_until IS NOT NULL THEN 1 ELSE 0 END)"


def _chance(last: bool) -> str:
    """Return what tells last chances from other messages; parameter: the crashes allowed."""
    # Asked of rows that crashed before: the index over them is small.
    return f"crashes > 0 AND {_CRASHED} >= %s - 1" if last else f"(crashes = 0 OR {_CRASHED} < %s - 1)"


@dataclass(frozen=True)
class QueueStatements:
    """The statements on one database vendor."""

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
        """Return the SQL of the time that comes ``seconds`` (SQL of a number) after the present."""
        return _NOW_PLUS[self.vendor].format(seconds=seconds)

    def _insert(self, on_conflict: str) -> str:
        names = ", ".join((*_NEW, "created_at", "available_at", "due_at"))
        insert = (
            f"INSERT INTO {self.table} ({names}) "  # noqa: S608 - names of our own model, no input
            f"VALUES (%s, %s, %s, %s, %s, '', '', 0, 0, '', {self.now}, {self.after('%s')}, {self.after('%s')}) "
            f"ON CONFLICT {on_conflict}"
        )
        if self.vendor == "postgresql":
            # Listeners hear of it when the transaction is committed, and once however many messages it has.
            notify = f"SELECT pg_notify('{CHANNEL}', environment) FROM sent"  # noqa: S608 - as above
            return f"WITH sent AS ({insert} RETURNING environment) {notify}"
        return insert

    @cached_property
    def send(self) -> str:
        """Insert a message, or nothing where one of that kind and subject is there.

        The count of rows says which. Parameters: environment, kind, subject, body, priority, the delay in seconds, the
        delay less the priority's worth.
        """
        return self._insert("DO NOTHING")

    @cached_property
    def send_anew(self) -> str:
        """Insert a message, or start the one of that kind and subject from the beginning; parameters: as ``send``."""
        fresh = [name for name in _NEW if name not in ("environment", "kind", "subject")]
        changes = ", ".join(f"{name} = excluded.{name}" for name in (*fresh, "available_at", "due_at"))
        return self._insert(
            f"(environment, kind, subject) WHERE parked_at IS NULL DO UPDATE SET leased_until = NULL, {changes}"
        )

    @cached_property
    def _ready(self) -> str:
        """Return the condition that a message may be claimed; parameters: environment, twice."""
        # Within the statement, so that nothing is claimed after a pause, and nobody has to ask for it by itself.
        paused = (
            f"SELECT 1 FROM {KVEntry._meta.db_table} WHERE namespace = %s AND key = '{PAUSE_KEY}' "  # noqa: S608 - as above
            f"AND {statements(KVEntry, self.vendor).live}"
        )
        return (
            f"environment = %s AND parked_at IS NULL AND available_at <= {self.now} "
            f"AND (leased_until IS NULL OR leased_until <= {self.now}) AND NOT EXISTS ({paused})"
        )

    def any_ready(self, *, last_chance: bool) -> str:
        """Select one row where ``claim`` would find a message, none otherwise.

        Parameters: environment, twice, and the crashes allowed.
        """
        return f"SELECT 1 FROM {self.table} WHERE {self._ready} AND {_chance(last_chance)} LIMIT 1"  # noqa: S608 - as above

    def claim(self, *, last_chance: bool, parks: bool) -> str:
        """Lease the next messages and return them; park those that had their last chance, and return them as well.

        Nothing while the queue is paused. With ``last_chance`` only messages that one more crash would park, without
        it only others, among which none is to be parked as long as more than one crash is allowed; ``parks`` says
        whether any may be. Parameters: environment, twice, the crashes allowed, how many; the token, the lease in
        seconds, the worker, where it parks after the crashes allowed, twice, and the reason, and with the crashes
        allowed before token and lease; how many make a full batch, and how far from the present, in seconds, the
        oldest of fewer has to lie.
        """
        lock = " FOR UPDATE SKIP LOCKED" if self.vendor == "postgresql" else ""
        # A column that is named is written, and so is every index over it, whether or not its value is another.
        parked = "leased_until IS NOT NULL AND crashes + 1 >= %s"
        parking = (
            f"parked_at = CASE WHEN {parked} THEN {self.now} END, "
            f"last_error = CASE WHEN {parked} THEN %s ELSE last_error END, "
        )

        def unless_parked(otherwise: str, value: str) -> str:
            return f"CASE WHEN {parked} THEN {value} ELSE {otherwise} END" if parks else otherwise

        return (
            f"WITH next AS MATERIALIZED (SELECT id, available_at FROM {self.table} WHERE {self._ready} "  # noqa: S608 - as above
            f"AND {_chance(last_chance)} "
            f"ORDER BY due_at, id LIMIT %s{lock}) "
            f"UPDATE {self.table} SET crashes = {_CRASHED}, "
            f"{parking if parks else ''}"
            f"lease_token = {unless_parked('%s', repr(''))}, "
            f"leased_until = {unless_parked(self.after('%s'), 'NULL')}, "
            f"leased_by = %s "
            "WHERE id IN (SELECT id FROM next) AND ((SELECT COUNT(*) FROM next) >= %s "
            f"OR (SELECT MIN(available_at) FROM next) <= {self.after('%s')}) "
            "RETURNING id, kind, subject, body, errors, crashes, lease_token, due_at"
        )

    @cached_property
    def _valid(self) -> str:
        return f"parked_at IS NULL AND leased_until > {self.now}"

    @cached_property
    def _held(self) -> str:
        """Return the condition that a message is held under its token; parameters: id, token."""
        return f"{self._valid} AND id = %s AND lease_token = %s"

    @cached_property
    def _held_of_many(self) -> str:
        """Return the condition that a message is held and among the rows of ``v``, which have id and token."""
        return f"{self._valid} AND {among_rows(self.vendor, 'id', 'lease_token')}"

    @cached_property
    def acknowledge(self) -> str:
        """Delete the messages of ``v`` that are held, and return their ids."""
        return f"DELETE FROM {self.table} WHERE {self._held_of_many} RETURNING id"  # noqa: S608 - as above

    @cached_property
    def extend(self) -> str:
        """Renew the leases of the messages of ``v`` that are held, and return their ids; parameter: the lease in
        seconds."""
        return f"UPDATE {self.table} SET leased_until = {self.after('%s')} WHERE {self._held_of_many} RETURNING id"  # noqa: S608 - as above

    @cached_property
    def release(self) -> str:
        """Give a message back as it was before it was received; parameters: id, token."""
        return (
            f"UPDATE {self.table} SET lease_token = '', leased_by = '', leased_until = NULL "  # noqa: S608 - as above
            f"WHERE {self._held} RETURNING id"
        )

    @cached_property
    def surrender(self) -> str:
        """Give a message back even after its lease, if nobody else has had it since; parameters: id, token."""
        return (
            f"UPDATE {self.table} SET lease_token = '', leased_by = '', leased_until = NULL "  # noqa: S608 - as above
            "WHERE id = %s AND lease_token = %s AND parked_at IS NULL RETURNING id"
        )

    @cached_property
    def workers(self) -> str:
        """Select the workers that hold messages; parameter: environment."""
        return f"SELECT DISTINCT leased_by FROM {self.table} WHERE leased_until > {self.now} AND environment = %s"  # noqa: S608 - as above

    @cached_property
    def free(self) -> str:
        """End the leases of one worker now, and return the ids; parameters: environment, worker.

        Of what has crashed before, the lease is left to end: whatever ends every worker here within a second shall not
        park within seconds what it meets.
        """
        return (
            f"UPDATE {self.table} SET leased_until = {self.now} WHERE leased_until > {self.now} "  # noqa: S608 - as above
            "AND environment = %s AND leased_by = %s AND crashes = 0 RETURNING id"
        )

    @cached_property
    def retry_later(self) -> str:
        """Give a message back after an error; parameters: the reason, the delay in seconds twice, id, token."""
        return (
            f"UPDATE {self.table} SET lease_token = '', leased_by = '', leased_until = NULL, errors = errors + 1, "  # noqa: S608 - as above
            f"last_error = %s, available_at = {self.after('%s')}, due_at = {self.after(f'%s - priority * {AGING}')} "
            f"WHERE {self._held} RETURNING id"
        )

    @cached_property
    def park(self) -> str:
        """Set a message aside; parameters: the reason, id, token."""
        return (
            f"UPDATE {self.table} SET lease_token = '', leased_until = NULL, errors = errors + 1, last_error = %s, "  # noqa: S608 - as above
            f"parked_at = {self.now} WHERE {self._held} RETURNING id"
        )


@cache
def queue_statements(vendor: str) -> QueueStatements:
    """Return the statements on one database vendor."""
    return QueueStatements(vendor)
