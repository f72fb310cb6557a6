"""Let PostgreSQL find by one statement the nearest documents that are named by what is asked, and the others."""

from __future__ import annotations

from typing import Any

from django.db import migrations

DOCUMENTS = "marketplace_searchdocument"
# From the number that 16 downloads have, as search.documents counts it.
POPULAR = 5 << 40
# What is tested for being true is nothing that another index is asked for.
FOUND = "(passing IS NULL OR (held.{vector} @@ passing) IS TRUE) AND (held.skill_id <= last) IS TRUE"
WORDS = f"held.words @@ asked AND {FOUND.format(vector='words')}"
# Beside migration 0039's function, which the release before calls. What is downloaded much has an index of its own, is
# read once, and is mostly enough. More may be returned than is wanted: the caller sorts.
MAKE = f"""
    CREATE OR REPLACE FUNCTION {DOCUMENTS}_names_first(
        asked tsquery, passing tsquery, those tsquery, last bigint, most integer
    ) RETURNS TABLE (id bigint, skill_id bigint, named boolean) LANGUAGE plpgsql STABLE ROWS 100
    SET enable_seqscan = off SET enable_indexscan = off SET search_path FROM CURRENT AS $$
    DECLARE
        wanted tsquery := COALESCE(passing, asked);
        ids bigint[];
        skills bigint[];
        in_names boolean[];
        there integer;
        of_names integer;
    BEGIN
        IF those IS NOT NULL THEN
            RETURN QUERY SELECT held.id, held.skill_id, held.names @@ wanted FROM {DOCUMENTS} AS held
                WHERE {WORDS} AND held.filters @@ those ORDER BY 3 DESC, 1 DESC LIMIT most;
            RETURN;
        END IF;
        SELECT array_agg(one.id), array_agg(one.skill_id), array_agg(one.named), COUNT(*),
            COUNT(*) FILTER (WHERE one.named)
        INTO ids, skills, in_names, there, of_names
        FROM (SELECT held.id, held.skill_id, held.names @@ wanted AS named FROM {DOCUMENTS} AS held
              WHERE {WORDS} AND (held.id >= {POPULAR}) IS TRUE ORDER BY 3 DESC, 1 DESC LIMIT most) AS one;
        RETURN QUERY SELECT * FROM unnest(ids, skills, in_names);
        IF of_names < most THEN
            RETURN QUERY SELECT held.id, held.skill_id, TRUE FROM {DOCUMENTS} AS held
                WHERE held.names @@ asked AND {FOUND.format(vector="names")} AND (held.id < {POPULAR}) IS TRUE
                ORDER BY 1 DESC LIMIT most - of_names;
            GET DIAGNOSTICS of_names = ROW_COUNT;
            there := there + of_names;
        END IF;
        IF there < most THEN
            RETURN QUERY SELECT held.id, held.skill_id, FALSE FROM {DOCUMENTS} AS held
                WHERE {WORDS} AND (held.id < {POPULAR}) IS TRUE AND (NOT held.names @@ wanted) IS TRUE
                ORDER BY 1 DESC LIMIT most - there;
        END IF;
    END $$
"""  # noqa: S608 - our own names


def make(_apps: Any, schema_editor: Any) -> None:
    """Make the function."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(MAKE, params=None)


def drop(_apps: Any, schema_editor: Any) -> None:
    """Drop the function."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"DROP FUNCTION {DOCUMENTS}_names_first", params=None)


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0039_nearest_documents"),
    ]

    operations = [
        migrations.RunPython(make, drop, elidable=False),
    ]
