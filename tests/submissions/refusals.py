"""A database that refuses a write for real, so that what was written before it has to be taken back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections

REFUSAL = "this write is refused"


@contextmanager
def inserts_refused(alias: str, table: str) -> Iterator[None]:
    """Let the database ``alias`` refuse every new row of ``table`` while the body runs, with ``REFUSAL``."""
    with connections[alias].cursor() as cursor:
        if connections[alias].vendor == "postgresql":
            cursor.execute(
                "CREATE FUNCTION refuse_write() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN RAISE EXCEPTION '{REFUSAL}'; END $$"
            )
            cursor.execute(
                f"CREATE TRIGGER refuse_write BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION refuse_write()"
            )
        else:
            cursor.execute(
                f"CREATE TRIGGER refuse_write BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
            )
    try:
        yield
    finally:
        with connections[alias].cursor() as cursor:
            if connections[alias].vendor == "postgresql":
                cursor.execute("DROP FUNCTION refuse_write CASCADE")
            else:
                cursor.execute("DROP TRIGGER refuse_write")
