"""Many entries are written by one statement, each as a compare-and-set of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import DataError, IntegrityError, connections, transaction
from django.test.utils import CaptureQueriesContext

from submissions.models import SubmissionEntry, SubmissionTransition
from vskill.environments import WorkerEnv
from vskill.kv.batch import Change, update_many
from vskill.kv.errors import InvalidKey, InvalidValue
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.rows import NewRows, insert_rows

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


@pytest.fixture
def submissions(env: WorkerEnv) -> KVNamespace:
    """Return a namespace that holds two submissions, each at version 1."""
    namespace = KVNamespace(SubmissionEntry, env)
    for name in ("one", "two"):
        namespace.put_sync(f"sub:{name}", {"state": "RECEIVED", "identity": name})
    return namespace


def test_columns_that_stay_as_they_are_are_not_written(submissions: KVNamespace) -> None:
    found = {name: submissions.get_sync(f"sub:{name}").value for name in ("one", "two")}
    held = {**found["one"], "state": "ON_HOLD"}
    named = {**found["two"], "skillName": "hello", "updatedAt": "2026-01-02T03:04:05.678Z"}
    changes = [Change("sub:one", held, 1, found["one"]), Change("sub:two", named, 1, found["two"])]

    with CaptureQueriesContext(connections[submissions.alias]) as queries:
        assert write(submissions, *changes) == [True, True]

    # A column that is named costs its indexes their work, whatever is written into it.
    [statement] = [query["sql"] for query in queries if query["sql"].startswith("WITH v")]
    assert {column for column in SubmissionEntry.projected_columns if f'"{column}" = ' in statement} == {
        *("state", "skill_name", "state_at", "review_rank")
    }
    for name, value in (("one", held), ("two", named)):
        entry = SubmissionEntry.objects.get(key=f"sub:{name}")
        columns = {column: getattr(entry, column) for column in entry.projected_columns}
        assert columns == SubmissionEntry.project(value)


def test_a_value_that_was_anything_is_compared_too(submissions: KVNamespace) -> None:
    submissions.put_sync("sub:one", ["no", "submission"])
    after = {"state": "ON_HOLD", "identity": "one"}
    assert write(submissions, Change("sub:one", after, 2, ["no", "submission"])) == [True]
    entry = SubmissionEntry.objects.get(key="sub:one")
    assert {column: getattr(entry, column) for column in entry.projected_columns} == SubmissionEntry.project(after)


def steps(*submissions: str) -> NewRows:
    columns = ("namespace", "submission_id", "sequence", "from_state", "to_state", "reason", "actor", "trigger")
    rows = [("default", one, 2, "RECEIVED", "ON_HOLD", "a \"reason\" \\ with 'quotes'", "", "") for one in submissions]
    return NewRows(SubmissionTransition, columns, rows)


def test_a_row_beside_a_change_is_inserted_where_the_change_is_written(submissions: KVNamespace) -> None:
    changes = [Change(f"sub:{name}", {"state": "ON_HOLD"}, 1) for name in ("missing", "two")]
    answers = update_many(SubmissionEntry, submissions.alias, submissions.name, changes, steps("missing", "two"))
    assert answers == [False, True]
    [row] = SubmissionTransition.objects.values_list("submission_id", "sequence", "reason")
    assert row == ("two", 2, "a \"reason\" \\ with 'quotes'")


def test_a_row_that_cannot_be_inserted_lets_no_change_happen(submissions: KVNamespace) -> None:
    insert_rows(submissions.alias, steps("two"))
    changes = [Change(f"sub:{name}", {"state": "ON_HOLD", "identity": name}, 1) for name in ("one", "two")]
    with pytest.raises(IntegrityError):
        update_many(SubmissionEntry, submissions.alias, submissions.name, changes, steps("one", "two"))
    assert set(SubmissionEntry.objects.values_list("state", "version")) == {("RECEIVED", 1)}
    assert SubmissionTransition.objects.count() == 1


@pytest.mark.parametrize("text", ["cut\0off", "half a pair \ud800"])
def test_a_text_that_no_database_holds_is_refused_and_not_cut_off(submissions: KVNamespace, text: str) -> None:
    row = steps("two")
    broken = replace(row, rows=[tuple(text if value == "ON_HOLD" else value for value in row.rows[0])])
    with pytest.raises((InvalidValue, UnicodeEncodeError, DataError)), transaction.atomic(using=submissions.alias):
        insert_rows(submissions.alias, broken)
    assert SubmissionTransition.objects.count() == 0


def test_a_text_that_spells_out_an_escape_is_written_as_it_is(submissions: KVNamespace) -> None:
    row = steps("two")
    insert_rows(submissions.alias, replace(row, rows=[("default", "two", 2, "", "", r"\u0000 and \\u0000", "", "")]))
    assert SubmissionTransition.objects.get().reason == r"\u0000 and \\u0000"


def test_a_constraint_that_one_breaks_lets_none_happen(submissions: KVNamespace) -> None:
    changes = [Change(f"sub:{name}", {"state": "ON_HOLD", "identity": "one"}, 1) for name in ("one", "two")]
    with pytest.raises(IntegrityError), transaction.atomic(using=submissions.alias):
        write(submissions, *changes)
    assert set(SubmissionEntry.objects.values_list("state", "version")) == {("RECEIVED", 1)}


@pytest.mark.parametrize(
    ("change", "error"), [(Change("", 1, 1), InvalidKey), (Change("a", float("nan"), 1), InvalidValue)]
)
def test_what_could_not_be_put_cannot_be_changed(entries: KVNamespace, change: Change, error: type[Exception]) -> None:
    with pytest.raises(error):
        write(entries, Change("b", 2, 1), change)
    assert entries.get_sync("b").value == {"was": "b"}
