"""Submissions whose value the database fails to give out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import connection, transaction

from submissions.models import SubmissionEntry
from vskill.kv.threads import readers, writers

TABLE = SubmissionEntry._meta.db_table


@contextmanager
def unreadable_submissions(keys: Sequence[str]) -> Iterator[None]:
    """Make the values of these entries unreadable while the body runs; all others can be read and written."""
    if connection.vendor == "sqlite":
        marks = ", ".join(["%s"] * len(keys))
        with connection.cursor() as cursor:
            # A byte that no UTF-8 text has.
            cursor.execute(f"UPDATE {TABLE} SET value = CAST(X'22ff22' AS TEXT) WHERE key IN ({marks})", list(keys))  # noqa: S608 - our own names
        yield
        return
    _close_threads()
    with transaction.atomic(), connection.cursor() as cursor:
        _put_a_view_in_front(cursor, keys)
    try:
        yield
    finally:
        # No thread may still hold a lock on the view.
        _close_threads()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"DROP VIEW {TABLE}")
            cursor.execute(f"ALTER TABLE damaged_rows RENAME TO {TABLE}")
            cursor.execute("DROP FUNCTION damaged_write(), damaged_page(text)")


def _close_threads() -> None:
    readers.close()
    writers.close()


def _put_a_view_in_front(cursor: object, keys: Sequence[str]) -> None:
    """Put a view in the place of the table that fails, as a damaged page does, where one of these rows is read."""
    execute = cursor.execute  # type: ignore[attr-defined]  # a cursor of Django's
    fields = [f'"{field.attname}"' for field in SubmissionEntry._meta.concrete_fields]
    fail = "BEGIN RAISE EXCEPTION 'invalid page in block 7' USING ERRCODE = 'data_corrupted'; END"
    # STABLE, so that a query that does not ask for the value does not fail.
    execute(f"CREATE FUNCTION damaged_page(text) RETURNS text STABLE LANGUAGE plpgsql AS $$ {fail} $$")
    execute(f"ALTER TABLE {TABLE} RENAME TO damaged_rows")
    quoted = ", ".join(f"'{key}'" for key in keys)
    failing = f"CASE WHEN key IN ({quoted}) THEN damaged_page(key) ELSE value END AS value"
    shown = ", ".join(failing if field == '"value"' else field for field in fields)
    execute(f"CREATE VIEW {TABLE} AS SELECT {shown} FROM damaged_rows")  # noqa: S608 - our own names
    changed = ", ".join(f"{field} = NEW.{field}" for field in fields if field != '"id"')
    write = f"BEGIN UPDATE damaged_rows SET {changed} WHERE id = OLD.id; RETURN NEW; END"  # noqa: S608 - as above
    execute(f"CREATE FUNCTION damaged_write() RETURNS trigger LANGUAGE plpgsql AS $$ {write} $$")
    execute(f"CREATE TRIGGER damaged_write INSTEAD OF UPDATE ON {TABLE} FOR EACH ROW EXECUTE FUNCTION damaged_write()")
