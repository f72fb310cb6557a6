"""A namespace behaves like a dict, whatever is done to it in whatever order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.vskill.kv.conformance_listing import pages
from vskill.environments import WorkerEnv
from vskill.kv.errors import VersionConflict
from vskill.kv.memory import MemoryNamespace
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Outcome, Status
from vskill.kv.port import Namespace

PAST = datetime(2020, 1, 1, tzinfo=UTC)
FUTURE = datetime(2200, 1, 1, tzinfo=UTC)

PREFIXES = ["", "a", "a%", "ä", "\U0010ffff"]
KEYS = st.one_of(
    st.sampled_from(["a", "A", "a%", "a_", "aa", "ab", "a\U0010ffff", "ä", "äa", "b", "\U0010ffff", "\U0010ffffz"]),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=3),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@dataclass
class Expected:
    """What a dict says about an entry."""

    value: Any
    version: int
    expired: bool


class NamespaceMachine(RuleBasedStateMachine):
    """Do the same to a namespace and to a dict, and compare what both say."""

    numbers = count()

    def new_namespace(self, name: str) -> Namespace:
        """Return a store in which nothing is."""
        return MemoryNamespace(name)

    @initialize()
    def begin(self) -> None:
        """Start with a store of its own, so that nothing has to be emptied between two runs."""
        self.namespace = self.new_namespace(f"machine-{next(self.numbers)}")
        self.rows: dict[str, Expected] = {}

    def version_of(self, key: str) -> int:
        """Return the version that a compare-and-set must name, 0 where nothing is."""
        row = self.rows.get(key)
        return row.version if row is not None and not row.expired else 0

    @rule(key=KEYS, value=VALUES, expiry=st.sampled_from([None, None, FUTURE, PAST]))
    def put(self, key: str, value: Any, expiry: datetime | None) -> None:
        """Write without expecting anything."""
        version = self.rows[key].version + 1 if key in self.rows else 1
        assert async_to_sync(self.namespace.put)(key, value, expires_at=expiry) == version
        self.rows[key] = Expected(value, version, expired=expiry is PAST)

    @rule(key=KEYS, value=VALUES, off=st.sampled_from([0, 0, 0, 1, -1]))
    def compare_and_set(self, key: str, value: Any, off: int) -> None:
        """Write expecting the right version, or one beside it."""
        expected = self.version_of(key) + off
        if expected < 0:
            return
        if off:
            with pytest.raises(VersionConflict):
                async_to_sync(self.namespace.put)(key, value, expect_version=expected)
            return
        version = self.rows[key].version + 1 if key in self.rows else 1
        assert async_to_sync(self.namespace.put)(key, value, expect_version=expected) == version
        self.rows[key] = Expected(value, version, expired=False)

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        """Delete what is there; what has expired is not."""
        there = self.version_of(key) > 0
        assert async_to_sync(self.namespace.delete)(key) == there
        if there:
            del self.rows[key]

    @rule()
    def purge(self) -> None:
        """Delete all that has expired."""
        expired = [key for key, row in self.rows.items() if row.expired]
        assert async_to_sync(self.namespace.purge_expired)() == len(expired)
        for key in expired:
            del self.rows[key]

    @rule(key=KEYS)
    def read_one(self, key: str) -> None:
        """Read a key that may or may not be there."""
        assert async_to_sync(self.namespace.get)(key) == self.expected(key)

    @rule(prefix=st.sampled_from(PREFIXES), limit=st.integers(1, 4))
    def list_pages(self, prefix: str, limit: int) -> None:
        """List by pages."""
        live = [key for key, row in self.rows.items() if key.startswith(prefix) and not row.expired]
        found = async_to_sync(pages)(self.namespace, prefix, limit)
        assert [key for page in found for key in page] == sorted(live, key=str.encode)
        assert all(len(page) == limit for page in found[:-1])

    @invariant()
    def every_entry_reads_as_the_dict_says(self) -> None:
        """Read all of it at once."""

        async def read() -> list[Outcome]:
            return [outcome async for outcome in self.namespace.get_many(self.rows)]

        assert async_to_sync(read)() == [self.expected(key) for key in self.rows]

    def expected(self, key: str) -> Outcome:
        """Return the outcome that the dict foresees."""
        row = self.rows.get(key)
        if row is None:
            return Outcome(key, Status.MISSING)
        if row.expired:
            return Outcome(key, Status.EXPIRED)
        return Outcome(key, Status.VALUE, row.value, row.version)


class TableMachine(NamespaceMachine):
    """Do it to a table."""

    def new_namespace(self, name: str) -> Namespace:
        """Return an environment of the table in which nothing is."""
        return KVNamespace(KVEntry, WorkerEnv(name=name))


def run(machine: type[NamespaceMachine], examples: int) -> None:
    """Run a machine."""
    chosen = settings(
        max_examples=examples,
        stateful_step_count=25,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=chosen)


def test_a_namespace_in_memory_behaves_like_a_dict() -> None:
    run(NamespaceMachine, 60)


@pytest.mark.django_db(transaction=True)
def test_a_table_behaves_like_a_dict() -> None:
    run(TableMachine, 30)
