"""A row agrees with itself: projected columns are written with their value, or not at all."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from submissions.models import SubmissionEntry
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now, isoformat, parse_isoformat
from vskill.kv.codec import MAX_KEY_LENGTH, prefix_end
from vskill.kv.errors import InvalidValue, ProjectedColumn, VersionConflict
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace

VALUE = {"state": "RECEIVED", "repoUrl": "https://git.example.com/a/b", "identity": "x", "updatedAt": "2026-01-01"}


@pytest.fixture
def namespace(env: WorkerEnv) -> KVNamespace:
    return KVNamespace(SubmissionEntry, env)


@pytest.mark.django_db
class TestProjectedColumns:
    """Typed columns come from the value alone."""

    def row(self) -> SubmissionEntry:
        return SubmissionEntry.objects.get(key="sub:1")

    def test_they_are_written_with_the_value(self, namespace: KVNamespace) -> None:
        namespace.put_sync("sub:1", VALUE)
        row = self.row()
        assert (row.state, row.repo_url) == ("RECEIVED", VALUE["repoUrl"])
        assert row.state_at == datetime(2026, 1, 1, tzinfo=UTC)
        namespace.put_sync("sub:1", {**VALUE, "state": "PUBLISHED"}, expect_version=1)
        assert self.row().state == "PUBLISHED"
        namespace.put_sync("sub:1", {})
        assert (self.row().state, self.row().state_at) == ("", None)

    @pytest.mark.parametrize("column", ["state", "repo_url", "state_at", "value", "version"])
    def test_none_is_updated_alone(self, namespace: KVNamespace, column: str) -> None:
        namespace.put_sync("sub:1", VALUE)
        with pytest.raises(ProjectedColumn, match="KVNamespace"):
            SubmissionEntry.objects.filter(key="sub:1").update(**{column: None})
        assert self.row().state == "RECEIVED"

    def test_an_entry_that_is_there_is_not_saved(self, namespace: KVNamespace) -> None:
        namespace.put_sync("sub:1", VALUE)
        row = self.row()
        row.state = "PUBLISHED"
        with pytest.raises(ProjectedColumn):
            row.save()
        with pytest.raises(ProjectedColumn):
            row.save(update_fields=["state"])
        with pytest.raises(ProjectedColumn):
            SubmissionEntry.objects.update_or_create(key="sub:1", defaults={"state": "PUBLISHED"})
        assert (self.row().state, self.row().version) == ("RECEIVED", 1)

    def test_rows_are_not_overwritten_in_bulk(self, namespace: KVNamespace) -> None:
        namespace.put_sync("sub:1", VALUE)
        row = self.row()
        row.state = "PUBLISHED"
        with pytest.raises(ProjectedColumn):
            SubmissionEntry.objects.bulk_update([row], ["state"])
        with pytest.raises(ProjectedColumn):
            SubmissionEntry.objects.bulk_create(
                [row], update_conflicts=True, update_fields=["state"], unique_fields=["namespace", "key"]
            )
        assert self.row().state == "RECEIVED"

    @pytest.mark.parametrize("way", ["create", "bulk_create", "save"])
    def test_a_new_row_gets_them_from_its_value_whatever_it_is_given(self, way: str) -> None:
        fields: dict[str, Any] = {
            "namespace": "default",
            "key": "sub:1",
            "value": '{"state": "RECEIVED"}',
            "state": "PUBLISHED",
        }
        if way == "create":
            SubmissionEntry.objects.create(**fields)
        elif way == "save":
            SubmissionEntry(**fields).save()
        else:
            SubmissionEntry.objects.bulk_create([SubmissionEntry(**fields)])
        assert (self.row().state, self.row().value) == ("RECEIVED", '{"state":"RECEIVED"}')

    def test_metadata_and_expiry_stand_by_themselves(self, namespace: KVNamespace) -> None:
        namespace.put_sync("sub:1", VALUE)
        assert SubmissionEntry.objects.filter(key="sub:1").update(metadata='{"a":1}') == 1
        assert namespace.get_sync("sub:1").metadata == {"a": 1}

    @pytest.mark.parametrize("text", ["a\0b", "half \ud800"], ids=["nul", "half a pair"])
    def test_a_text_that_no_column_could_hold_is_refused_with_its_name(
        self, namespace: KVNamespace, monkeypatch: pytest.MonkeyPatch, text: str
    ) -> None:
        columns = {**SubmissionEntry.project({}), "skill_name": text}
        monkeypatch.setattr(SubmissionEntry, "project", lambda _value: columns)
        with pytest.raises(InvalidValue, match="'skill_name'"):
            namespace.put_sync("sub:1", VALUE)
        assert not SubmissionEntry.objects.exists()

    def test_a_model_projects_what_it_names(self, namespace: KVNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(SubmissionEntry, "project", lambda _value: {"state": ""})
        with pytest.raises(ProjectedColumn, match="SubmissionEntry"):
            namespace.put_sync("sub:1", VALUE)


@pytest.mark.django_db
class TestInsideATransaction:
    """A write that fails leaves the transaction of its caller usable."""

    def test_a_conflict_does(self, namespace: KVNamespace) -> None:
        namespace.put_sync("sub:1", VALUE)
        with transaction.atomic():
            for expected in (0, 7):
                with pytest.raises(VersionConflict):
                    namespace.put_sync("sub:1", {}, expect_version=expected)
            namespace.put_sync("sub:2", {})
        assert namespace.get_sync("sub:2").found

    def test_a_constraint_of_the_table_does(self, namespace: KVNamespace) -> None:
        namespace.put_sync("sub:1", VALUE)
        namespace.put_sync("sub:2", {})
        with transaction.atomic():
            with pytest.raises(IntegrityError):
                namespace.put_sync("sub:3", VALUE, expect_version=0)
            with pytest.raises(IntegrityError):
                namespace.put_sync("sub:2", VALUE, expect_version=1)
            namespace.put_sync("sub:4", {})
        assert namespace.get_sync("sub:2").value == {}
        assert not namespace.get_sync("sub:3").found
        assert namespace.get_sync("sub:4").found

    def test_what_is_rolled_back_was_never_there(self, namespace: KVNamespace) -> None:
        with transaction.atomic():
            namespace.put_sync("sub:1", VALUE, expect_version=0)
            transaction.set_rollback(True)
        assert namespace.put_sync("sub:1", VALUE, expect_version=0) == 1

    def test_a_replaced_entry_is_as_old_as_its_first_write_unless_that_had_expired(self, env: WorkerEnv) -> None:
        namespace = KVNamespace(KVEntry, env)
        namespace.put_sync("key", 1)
        first = KVEntry.objects.get(key="key")
        namespace.put_sync("key", 2, expires_at=datetime(2020, 1, 1, tzinfo=UTC))
        second = KVEntry.objects.get(key="key")
        assert second.created_at == first.created_at
        assert second.updated_at >= first.updated_at
        namespace.put_sync("key", 3, expect_version=0)
        third = KVEntry.objects.get(key="key")
        assert third.created_at == third.updated_at
        assert (third.pk, third.version) == (first.pk, 3)


@pytest.mark.django_db
def test_the_key_column_compares_bytes_and_is_as_long_as_a_key_may_be() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 'a' < 'B' FROM (SELECT 1) one")
        columns = connection.introspection.get_table_description(cursor, KVEntry._meta.db_table)
    [column] = [column for column in columns if column.name == "key"]
    if connection.vendor == "postgresql":
        assert column.collation == "C"
    KVEntry.objects.create(namespace="default", key="a" * MAX_KEY_LENGTH, value="1")
    KVEntry.objects.create(namespace="default", key="B", value="1")
    assert [len(key) for key in KVEntry.objects.order_by("key").values_list("key", flat=True)] == [1, MAX_KEY_LENGTH]


@pytest.mark.parametrize(
    ("prefix", "end"),
    [
        ("sub:", "sub;"),
        ("a\U0010ffff", "b"),
        ("\ud7ff", "\ue000"),
        ("\U0010ffff", None),
        ("", None),
        ("\x7f", "\x80"),
        ("\uffff", "\U00010000"),
    ],
    ids=ascii,
)
def test_the_end_of_a_prefix_is_the_least_text_above_it(prefix: str, end: str | None) -> None:
    assert prefix_end(prefix) == end


@pytest.mark.django_db
def test_the_clock_of_the_database_is_in_utc_and_moves_on_within_a_transaction() -> None:
    first = database_now("default")
    assert first.tzinfo is UTC
    assert abs((datetime.now(UTC) - first).total_seconds()) < 60
    with transaction.atomic():
        begun = database_now("default")
        while (later := database_now("default")) == begun:
            pass
    assert later > begun >= first


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-02T03:04:05.678Z", datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)),
        ("2026-01-02T03:04:05+02:00", datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-14:00", None),
        ("yesterday", None),
        ("", None),
        (None, None),
        (1767225600, None),
    ],
)
def test_a_time_is_read_or_is_none(text: object, moment: datetime | None) -> None:
    assert parse_isoformat(text) == moment


def test_a_time_is_written_in_utc_to_the_millisecond() -> None:
    moment = datetime.fromisoformat("2026-01-02T03:04:05.678901+02:00")
    assert isoformat(moment) == "2026-01-02T01:04:05.678Z"
    assert parse_isoformat(isoformat(moment)) == moment.replace(microsecond=678000)
