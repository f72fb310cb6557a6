"""Give each engine of the search what it needs to find the nearest documents without looking further.

PostgreSQL gets a function that asks the indexes alone: it overrates how many documents have one of some rare words, and
would read all of them. Beside the words of a document stands what filters ask for, which a trigger takes from the skill
whenever its document is written, so that one index answers for both. Documents are filled in parts, and the index is
made beside the one before, so that the previous release searches and publishes meanwhile. SQLite gets a table of the
words in its index, by which what begins none is known.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations, transaction

DOCUMENTS = "marketplace_searchdocument"
# From the number that 16 downloads have, as search.documents counts it.
POPULAR = 5 << 40
# In the words of filters: "tag:pdf".
HELD = """
    SELECT skill_id, (kind || ':' || value) COLLATE "C" AS held FROM marketplace_skillfacet
    UNION ALL
    SELECT id, (one.kind || ':' || one.value) COLLATE "C" FROM marketplace_skillentry, LATERAL (
        VALUES ('verdict', verdict), ('publisher', publisher_handle), ('license', license)) AS one (kind, value)
    WHERE one.value <> ''
"""
FOUND = f"""
        SELECT held.id, held.skill_id FROM {DOCUMENTS} AS held
        WHERE held.{{vector}} @@ asked AND (passing IS NULL OR (held.{{vector}} @@ passing) IS TRUE) AND {{those}}
        AND (held.skill_id <= last) IS TRUE AND held.skill_id <> ALL (others)
        ORDER BY held.id DESC LIMIT most;
"""  # noqa: S608 - our own names
# What is tested for being true is nothing that another index is asked for: names are found by the index of all words.
REST = f"(held.id < {POPULAR}) IS TRUE"
NAMED = "(NOT in_names OR (held.names @@ COALESCE(passing, asked)) IS TRUE)"
AT_ONCE = 500
# What these read is in the schema of this installation, whatever a session that restores data looks in.
HERE = "SET search_path FROM CURRENT"
DEFINITIONS = (
    f"ALTER TABLE {DOCUMENTS} ADD COLUMN IF NOT EXISTS filters tsvector",
    f"""
    CREATE OR REPLACE FUNCTION {DOCUMENTS}_filters_of(skill bigint) RETURNS tsvector LANGUAGE sql STABLE
    SET enable_seqscan = off {HERE}
    AS $$ SELECT array_to_tsvector(array_agg(DISTINCT held)) FROM ({HELD}) AS each WHERE skill_id = skill $$
    """,  # noqa: S608 - our own names
    f"""
    CREATE OR REPLACE FUNCTION {DOCUMENTS}_filter() RETURNS trigger LANGUAGE plpgsql {HERE} AS $$
    BEGIN
        NEW.filters := {DOCUMENTS}_filters_of(NEW.skill_id);
        RETURN NEW;
    END $$
    """,
    f"DROP TRIGGER IF EXISTS {DOCUMENTS}_filtered ON {DOCUMENTS}",
    f"""
    CREATE TRIGGER {DOCUMENTS}_filtered BEFORE INSERT OR UPDATE ON {DOCUMENTS}
    FOR EACH ROW EXECUTE FUNCTION {DOCUMENTS}_filter()
    """,
    f"ALTER FUNCTION marketplace_searchword_add() {HERE}",
    # What is downloaded much has an index of its own, and is mostly enough.
    f"""
    CREATE OR REPLACE FUNCTION {DOCUMENTS}_nearest(
        asked tsquery, passing tsquery, those tsquery, last bigint, others bigint[], in_names boolean, most integer
    ) RETURNS TABLE (id bigint, skill_id bigint) LANGUAGE plpgsql STABLE ROWS 100
    SET enable_seqscan = off SET enable_indexscan = off {HERE} AS $$
    DECLARE
        there integer;
    BEGIN
        IF those IS NOT NULL THEN
            RETURN QUERY {FOUND.format(vector="words", those=f"held.filters @@ those AND {NAMED}")}
            RETURN;
        END IF;
        RETURN QUERY {FOUND.format(vector="words", those=f"(held.id >= {POPULAR}) IS TRUE AND {NAMED}")}
        GET DIAGNOSTICS there = ROW_COUNT;
        IF there < most AND in_names THEN
            RETURN QUERY {FOUND.format(vector="names", those=REST)}
        ELSIF there < most THEN
            RETURN QUERY {FOUND.format(vector="words", those=REST)}
        END IF;
    END $$
    """,
)
INDEX = (
    # Of a run that was stopped.
    f"DROP INDEX IF EXISTS {DOCUMENTS}_words_next",
    f"CREATE INDEX CONCURRENTLY {DOCUMENTS}_words_next ON {DOCUMENTS} USING gin (words, filters)",
    f"DROP INDEX CONCURRENTLY IF EXISTS {DOCUMENTS}_words",
    f"ALTER INDEX {DOCUMENTS}_words_next RENAME TO {DOCUMENTS}_words",
)
NO_POSTGRESQL = (
    f"DROP FUNCTION {DOCUMENTS}_nearest",
    "ALTER FUNCTION marketplace_searchword_add() RESET search_path",
    f"DROP TRIGGER {DOCUMENTS}_filtered ON {DOCUMENTS}",
    f"DROP FUNCTION {DOCUMENTS}_filter",
    f"DROP FUNCTION {DOCUMENTS}_filters_of",
    f"ALTER TABLE {DOCUMENTS} DROP COLUMN filters",
    f"CREATE INDEX {DOCUMENTS}_words ON {DOCUMENTS} USING gin (words)",
)
WORDS = "CREATE VIRTUAL TABLE marketplace_searchftsword USING fts5vocab('marketplace_searchfts', 'instance')"


def make(_apps: Any, schema_editor: Any) -> None:
    """Make what the engine needs."""
    connection = schema_editor.connection
    if connection.vendor != "postgresql":
        schema_editor.execute(WORDS, params=None)
        return
    with transaction.atomic(using=connection.alias):
        for statement in DEFINITIONS:
            schema_editor.execute(statement, params=None)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM {DOCUMENTS} WHERE filters IS NULL ORDER BY id")  # noqa: S608 - our own names
        keys = [key for (key,) in cursor.fetchall()]
        for start in range(0, len(keys), AT_ONCE):
            # The trigger writes them.
            text = f"UPDATE {DOCUMENTS} SET filters = NULL WHERE id = ANY(%s)"  # noqa: S608 - our own names
            cursor.execute(text, [keys[start : start + AT_ONCE]])
    for statement in INDEX:
        schema_editor.execute(statement, params=None)


def drop(_apps: Any, schema_editor: Any) -> None:
    """Drop what ``make`` made."""
    table = "DROP TABLE marketplace_searchftsword"
    for statement in NO_POSTGRESQL if schema_editor.connection.vendor == "postgresql" else (table,):
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("marketplace", "0038_one_set_of_capabilities"),
    ]

    operations = [
        migrations.RunPython(make, drop, elidable=False),
    ]
