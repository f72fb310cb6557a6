"""Keep the words of all documents on PostgreSQL, and index by itself what is downloaded much.

By the words, a search knows what begins none, and by a sample of documents with their words what many have. A trigger
adds those of each document that is written, whichever release writes it. SQLite needs none of it: FTS5 has an index of
beginnings, and reads what is downloaded much first.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations

DOCUMENTS = "marketplace_searchdocument"
WORDS = "marketplace_searchword"
SAMPLE = "marketplace_searchsample"
ONE_OF = 128
# A word may be there twice: publications at the same time do not wait for each other over one that is new. It is looked
# up by the index, however few the table had when the plan was made.
STATEMENTS = (
    f'CREATE TABLE {WORDS} (word text COLLATE "C" NOT NULL)',
    f"CREATE INDEX {WORDS}_word ON {WORDS} (word)",
    f'CREATE TABLE {SAMPLE} (word text COLLATE "C" NOT NULL, skill_id bigint NOT NULL)',
    f"CREATE INDEX {SAMPLE}_word ON {SAMPLE} (word, skill_id)",
    f"""
    CREATE FUNCTION {WORDS}_add() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
    BEGIN
        INSERT INTO {WORDS}
        SELECT held.word FROM (SELECT DISTINCT unnest(tsvector_to_array(words)) AS word FROM written) AS held
        WHERE (SELECT 1 FROM {WORDS} AS known WHERE known.word = held.word LIMIT 1) IS NULL;
        INSERT INTO {SAMPLE}
        SELECT held.word, held.skill_id
        FROM (SELECT unnest(tsvector_to_array(words)) AS word, skill_id FROM written WHERE skill_id % {ONE_OF} = 0) AS held
        WHERE (
            SELECT 1 FROM {SAMPLE} AS known WHERE known.word = held.word AND known.skill_id = held.skill_id LIMIT 1
        ) IS NULL;
        RETURN NULL;
    END $$
    """,  # noqa: S608 - our own names
    *(
        f"CREATE TRIGGER {WORDS}_{event.lower()} AFTER {event} ON {DOCUMENTS} REFERENCING NEW TABLE AS written "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {WORDS}_add()"
        for event in ("INSERT", "UPDATE")
    ),
    # From the number that 16 downloads have, as search.documents counts it.
    f"CREATE INDEX {DOCUMENTS}_popular ON {DOCUMENTS} USING gin (words) WHERE (id >= {5 << 40}) IS TRUE",
    f"INSERT INTO {WORDS} SELECT word FROM ts_stat('SELECT words FROM {DOCUMENTS}')",  # noqa: S608 - our own names
    f"""
    INSERT INTO {SAMPLE} SELECT unnest(tsvector_to_array(words)), skill_id FROM {DOCUMENTS}
    WHERE skill_id % {ONE_OF} = 0
    """,  # noqa: S608 - our own names
)


def keep(_apps: Any, schema_editor: Any) -> None:
    """Make the tables, the triggers and the index, and add the words that are there."""
    if schema_editor.connection.vendor == "postgresql":
        for statement in STATEMENTS:
            schema_editor.execute(statement, params=None)


def forget(_apps: Any, schema_editor: Any) -> None:
    """Take all of it away again."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"DROP INDEX {DOCUMENTS}_popular", params=None)
        schema_editor.execute(f"DROP FUNCTION {WORDS}_add CASCADE", params=None)
        for table in (WORDS, SAMPLE):
            schema_editor.execute(f"DROP TABLE {table}", params=None)


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0031_spellings_of_names"),
    ]

    operations = [
        migrations.RunPython(keep, forget),
    ]
