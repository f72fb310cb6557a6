"""The namespace in a table keeps the promises of the port, on the database of this run."""

from __future__ import annotations

import pytest

from submissions.models import SubmissionEntry
from tests.vskill.kv.conformance import NamespaceConformance
from tests.vskill.kv.conformance_listing import ListingConformance
from vskill.environments import WorkerEnv
from vskill.kv.models import AbstractKVEntry, KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.port import Namespace
from vskill.kv.threads import writers


@pytest.mark.django_db(transaction=True)
class TestTable(NamespaceConformance, ListingConformance):
    """Run the suite on the table of the entries that have no table of their own."""

    model: type[AbstractKVEntry] = KVEntry

    @pytest.fixture
    def namespace(self, env: WorkerEnv) -> Namespace:
        """Return the entries of one environment."""
        return KVNamespace(self.model, env)

    @pytest.fixture
    def neighbour(self) -> Namespace:
        """Return those of another in the same table."""
        return KVNamespace(self.model, WorkerEnv(name="neighbour"))

    async def damage(self, namespace: Namespace, key: str, text: str) -> None:
        """Overwrite the text in the table."""
        assert isinstance(namespace, KVNamespace)
        rows = self.model.objects.using(namespace.alias).live().filter(namespace=namespace.name, key=key)
        assert await writers.run(rows.write_row, value=text) == 1

    async def test_few_keys_are_read_at_once_in_their_order(self, namespace: Namespace) -> None:
        assert isinstance(namespace, KVNamespace)
        await namespace.put("one", 1)
        await namespace.put("two", 2)
        found = await writers.run(namespace.get_few_sync, ("two", "none", "one", "two"))
        assert [(one.key, one.value, one.absent) for one in found] == [
            ("two", 2, False),
            ("none", None, True),
            ("one", 1, False),
            ("two", 2, False),
        ]


@pytest.mark.django_db(transaction=True)
class TestTableWithProjectedColumns(TestTable):
    """Run it on a table whose columns are projected from the value."""

    model = SubmissionEntry
