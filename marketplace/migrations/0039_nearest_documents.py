"""Give each engine of the search what it needs to find the nearest documents without looking further.

PostgreSQL gets a function that asks the indexes alone: it overrates how many documents have one of some rare words, and
would read all of them. SQLite gets a table of the words in its index, by which what begins none is known.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations

DOCUMENTS = "marketplace_searchdocument"
# From the number that 16 downloads have, as search.documents counts it.
POPULAR = 5 << 40
FOUND = f"""
        SELECT held.id, held.skill_id FROM {DOCUMENTS} AS held
        WHERE held.{{vector}} @@ asked AND (passing IS NULL OR (held.{{vector}} @@ passing) IS TRUE) AND {{those}}
        ORDER BY held.id DESC LIMIT most;
"""  # noqa: S608 - our own names
REST = f"held.id < {POPULAR}"
# Those of names by the index of all words: what is tested for being true is nothing that an index is asked for.
FIRST = f"(held.id >= {POPULAR}) IS TRUE AND (NOT in_names OR (held.names @@ COALESCE(passing, asked)) IS TRUE)"
# What is downloaded much has an index of its own, and is mostly enough.
NEAREST = f"""
    CREATE FUNCTION {DOCUMENTS}_nearest(asked tsquery, passing tsquery, in_names boolean, most integer)
    RETURNS TABLE (id bigint, skill_id bigint) LANGUAGE plpgsql STABLE ROWS 100
    SET enable_seqscan = off SET enable_indexscan = off AS $$
    DECLARE
        there integer;
    BEGIN
        RETURN QUERY {FOUND.format(vector="words", those=FIRST)}
        GET DIAGNOSTICS there = ROW_COUNT;
        IF there < most AND in_names THEN
            RETURN QUERY {FOUND.format(vector="names", those=REST)}
        ELSIF there < most THEN
            RETURN QUERY {FOUND.format(vector="words", those=REST)}
        END IF;
    END $$
"""
WORDS = "CREATE VIRTUAL TABLE marketplace_searchftsword USING fts5vocab('marketplace_searchfts', 'instance')"


def make(_apps: Any, schema_editor: Any) -> None:
    """Make the function, or the table."""
    schema_editor.execute(NEAREST if schema_editor.connection.vendor == "postgresql" else WORDS, params=None)


def drop(_apps: Any, schema_editor: Any) -> None:
    """Drop what ``make`` made."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"DROP FUNCTION {DOCUMENTS}_nearest")
    else:
        schema_editor.execute("DROP TABLE marketplace_searchftsword")


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0038_one_set_of_capabilities"),
    ]

    operations = [
        migrations.RunPython(make, drop, elidable=False),
    ]
