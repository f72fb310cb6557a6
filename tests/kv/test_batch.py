"""Many entries are written by one statement, each as a compare-and-set of its own."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from submissions.models import SubmissionEntry
from vskill.environments import WorkerEnv
from vskill.kv.batch import Change, update_many
from vskill.kv.errors import InvalidKey, InvalidValue
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def entries(env: WorkerEnv) -> KVNamespace:
    """Return a namespace that holds a, b and c, each at version 1."""
    namespace = KVNamespace(KVEntry, env)
    for key in "abc":
        namespace.put_sync(key, {"was": key})
    return namespace


def write(namespace: KVNamespace, *changes: Change) -> list[bool]:
    return update_many(namespace.model, namespace.alias, namespace.name, changes)


def test_each_change_that_finds_its_version_is_written(entries: KVNamespace) -> None:
    entries.put_sync("b", {"was": "changed"})
    answers = write(entries, Change("c", 3, 1), Change("b", 2, 1), Change("missing", 0, 1), Change("a", 1, 1))
    assert answers == [True, False, False, True]
    found = {key: entries.get_sync(key) for key in "abc"}
    assert {key: (one.value, one.version) for key, one in found.items()} == {
        "a": (1, 2),
        "b": ({"was": "changed"}, 2),
        "c": (3, 2),
    }


def test_nothing_to_write_is_nothing_written(entries: KVNamespace) -> None:
    assert write(entries) == []


def test_another_environment_is_not_touched(entries: KVNamespace, env: WorkerEnv) -> None:
    other = KVNamespace(KVEntry, WorkerEnv(name="another", database=env.database))
    assert write(other, Change("a", 1, 1)) == [False]
    assert entries.get_sync("a").value == {"was": "a"}


def test_an_entry_that_has_expired_is_none(entries: KVNamespace) -> None:
    KVEntry.objects.filter(key="a").update(expires_at="2020-01-01T00:00:00Z")
    assert write(entries, Change("a", 1, 1)) == [False]


def test_columns_are_projected_from_the_value(env: WorkerEnv) -> None:
    namespace = KVNamespace(SubmissionEntry, env)
    value = {"state": "RECEIVED", "identity": "one", "updatedAt": "2026-01-02T03:04:05.678Z"}
    namespace.put_sync("sub:one", value)
    changed = {**value, "state": "ON_HOLD", "repoUrl": "https://git.example.org/a/b"}
    assert write(namespace, Change("sub:one", changed, 1)) == [True]
    entry = SubmissionEntry.objects.get()
    assert {column: getattr(entry, column) for column in entry.projected_columns} == SubmissionEntry.project(changed)


def test_a_constraint_that_one_breaks_lets_none_happen(env: WorkerEnv) -> None:
    namespace = KVNamespace(SubmissionEntry, env)
    for name in ("one", "two"):
        namespace.put_sync(f"sub:{name}", {"state": "RECEIVED", "identity": name})
    changes = [Change(f"sub:{name}", {"state": "ON_HOLD", "identity": "one"}, 1) for name in ("one", "two")]
    with pytest.raises(IntegrityError), transaction.atomic(using=env.database):
        write(namespace, *changes)
    assert set(SubmissionEntry.objects.values_list("state", "version")) == {("RECEIVED", 1)}


@pytest.mark.parametrize(
    ("change", "error"), [(Change("", 1, 1), InvalidKey), (Change("a", float("nan"), 1), InvalidValue)]
)
def test_what_could_not_be_put_cannot_be_changed(entries: KVNamespace, change: Change, error: type[Exception]) -> None:
    with pytest.raises(error):
        write(entries, Change("b", 2, 1), change)
    assert entries.get_sync("b").value == {"was": "b"}
