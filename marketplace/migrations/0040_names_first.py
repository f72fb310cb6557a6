"""Let PostgreSQL find by one statement the nearest documents that are named by what is asked, and the others.

The words of names are kept by themselves: few of the words that begin with a short term are in names, and the index is
asked for these alone.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations

DOCUMENTS = "marketplace_searchdocument"
WORDS = "marketplace_searchword"
NAMED = "marketplace_searchnameword"
SAMPLE = "marketplace_searchsample"
ONE_OF = 128
# From the number that 16 downloads have, as search.documents counts it.
POPULAR = 5 << 40
HERE = "SET search_path FROM CURRENT"
NEW = """
        INSERT INTO {table}
        SELECT held.word FROM (SELECT DISTINCT unnest(tsvector_to_array({vector})) AS word FROM written) AS held
        WHERE (SELECT 1 FROM {table} AS known WHERE known.word = held.word LIMIT 1) IS NULL;
"""
SAMPLED = f"""
        INSERT INTO {SAMPLE}
        SELECT held.word, held.skill_id
        FROM (SELECT unnest(tsvector_to_array(words)) AS word, skill_id FROM written WHERE skill_id % {ONE_OF} = 0) AS held
        WHERE (
            SELECT 1 FROM {SAMPLE} AS known WHERE known.word = held.word AND known.skill_id = held.skill_id LIMIT 1
        ) IS NULL;
"""  # noqa: S608 - our own names
WORDS_ADDED, NAMES_ADDED = NEW.format(table=WORDS, vector="words"), NEW.format(table=NAMED, vector="names")
# As migration 0032 made it.
ADD = f"""
    CREATE OR REPLACE FUNCTION {WORDS}_add() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off {HERE} AS $$
    BEGIN{{added}}{SAMPLED}        RETURN NULL;
    END $$
"""
# What is tested for being true is nothing that another index is asked for.
FOUND = "(held.skill_id <= last) IS TRUE AND (filtered IS NULL OR (held.filters @@ filtered) IS TRUE)"
IN_WORDS = f"held.words @@ asked AND (passing IS NULL OR (held.words @@ passing) IS TRUE) AND {FOUND}"
NAMED_BY = "held.names @@ named AND (named_passing IS NULL OR (held.names @@ named_passing) IS TRUE)"
# Beside the function of migration 0039, which the release before calls. What is downloaded much has an index of its
# own, is read once, and is mostly enough. More may be returned than is wanted: the caller sorts.
FIND = f"""
    CREATE OR REPLACE FUNCTION {DOCUMENTS}_found(
        asked tsquery, passing tsquery, names_first boolean, named tsquery, named_passing tsquery, those tsquery,
        filtered tsquery, last bigint, most integer
    ) RETURNS TABLE (id bigint, skill_id bigint, is_named boolean) LANGUAGE plpgsql STABLE ROWS 100
    SET enable_seqscan = off SET enable_indexscan = off {HERE} AS $$
    DECLARE
        wanted tsquery := COALESCE(passing, asked);
        ids bigint[];
        skills bigint[];
        are_named boolean[];
        there integer;
        of_names integer;
    BEGIN
        IF those IS NOT NULL THEN
            RETURN QUERY SELECT held.id, held.skill_id, names_first AND held.names @@ wanted FROM {DOCUMENTS} AS held
                WHERE {IN_WORDS} AND held.filters @@ those ORDER BY 3 DESC, 1 DESC LIMIT most;
            RETURN;
        END IF;
        SELECT array_agg(one.id), array_agg(one.skill_id), array_agg(one.has_name), COUNT(*),
            COUNT(*) FILTER (WHERE one.has_name)
        INTO ids, skills, are_named, there, of_names
        FROM (SELECT held.id, held.skill_id, names_first AND held.names @@ wanted AS has_name FROM {DOCUMENTS} AS held
              WHERE {IN_WORDS} AND (held.id >= {POPULAR}) IS TRUE ORDER BY 3 DESC, 1 DESC LIMIT most) AS one;
        RETURN QUERY SELECT * FROM unnest(ids, skills, are_named);
        IF names_first AND named IS NOT NULL AND of_names < most THEN
            RETURN QUERY SELECT held.id, held.skill_id, TRUE FROM {DOCUMENTS} AS held
                WHERE {NAMED_BY} AND {FOUND} AND (held.id < {POPULAR}) IS TRUE ORDER BY 1 DESC LIMIT most - of_names;
            GET DIAGNOSTICS of_names = ROW_COUNT;
            there := there + of_names;
        END IF;
        IF there < most THEN
            RETURN QUERY SELECT held.id, held.skill_id, FALSE FROM {DOCUMENTS} AS held
                WHERE {IN_WORDS} AND (held.id < {POPULAR}) IS TRUE
                AND (NOT names_first OR named IS NULL OR NOT ({NAMED_BY})) IS TRUE ORDER BY 1 DESC LIMIT most - there;
        END IF;
    END $$
"""  # noqa: S608 - our own names
# Publications wait meanwhile, at 110,000 skills for half a second.
LOCK = f"LOCK TABLE {DOCUMENTS} IN SHARE ROW EXCLUSIVE MODE"
STATEMENTS = (
    # The words of one that still has the old function would be committed unseen.
    LOCK,
    f'CREATE TABLE {NAMED} (word text COLLATE "C" NOT NULL)',
    f"CREATE INDEX {NAMED}_word ON {NAMED} (word)",
    ADD.format(added=WORDS_ADDED + NAMES_ADDED),
    f"INSERT INTO {NAMED} SELECT word FROM ts_stat('SELECT names FROM {DOCUMENTS}')",  # noqa: S608 - our own names
    FIND,
)
BACKWARDS = (
    # One that still has this function would fail, because the table is gone.
    LOCK,
    f"DROP FUNCTION {DOCUMENTS}_found",
    ADD.format(added=WORDS_ADDED),
    f"DROP TABLE {NAMED}",
)


def make(_apps: Any, schema_editor: Any) -> None:
    """Make the function and the table, and add the words that are there."""
    _execute(schema_editor, STATEMENTS)


def drop(_apps: Any, schema_editor: Any) -> None:
    """Drop what ``make`` made."""
    _execute(schema_editor, BACKWARDS)


def _execute(schema_editor: Any, statements: tuple[str, ...]) -> None:
    if schema_editor.connection.vendor == "postgresql":
        for statement in statements:
            schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0039_nearest_documents"),
    ]

    operations = [
        migrations.RunPython(make, drop, elidable=False),
    ]
