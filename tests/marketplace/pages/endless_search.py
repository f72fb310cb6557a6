"""Put a view in the place of the search index from which a search never gets its last row."""

from __future__ import annotations

from typing import Final

WORD: Final = "endless"


def make_endless(namespace: str, vendor: str) -> list[str]:
    """Return the statements after which every search for ``WORD`` in the environment ``namespace`` is endless."""
    # All combinations of four numbers below a thousand: no engine keeps them, and no machine is through in an hour.
    numbers = "WITH RECURSIVE numbers(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i < 999)"
    texts = "'' AS name, '' AS tags, '' AS owner, '' AS repository, '' AS description, '' AS body"
    numbered = "CAST(1 AS bigint) AS id, CAST(-1 - a.i - b.i - c.i - d.i AS bigint) AS skill_id"
    columns = f"{numbered}, '{namespace}' AS namespace, {texts}"
    vector = f"array_to_tsvector(ARRAY['{WORD}'])"
    vectors = f", {vector} AS words, {vector} AS names, {vector} AS filters"
    # The document of some skill is looked for among all of them.
    some = "SELECT MIN(id) FROM marketplace_skillentry WHERE slug <> ''"
    indexed = f"INSERT INTO marketplace_searchfts(rowid, body) SELECT ({some}), '{WORD}'"
    known = f"INSERT INTO marketplace_searchword VALUES ('{WORD}')"  # noqa: S608 - our own names
    chosen = columns + (vectors if vendor == "postgresql" else "")
    combined = "numbers a, numbers b, numbers c, numbers d"
    return [
        "ALTER TABLE marketplace_searchdocument RENAME TO the_documents",
        indexed if vendor == "sqlite" else known,
        f"CREATE VIEW marketplace_searchdocument AS {numbers} SELECT {chosen} FROM {combined}",  # noqa: S608 - our own names
    ]


def make_usual(vendor: str) -> list[str]:
    """Return the statements after which searches are as they were before those of ``make_endless``."""
    return [
        "DROP VIEW marketplace_searchdocument",
        "ALTER TABLE the_documents RENAME TO marketplace_searchdocument",
        # The word was written into the index alone.
        "INSERT INTO marketplace_searchfts(marketplace_searchfts) VALUES ('rebuild')"
        if vendor == "sqlite"
        else f"DELETE FROM marketplace_searchword WHERE word = '{WORD}'",  # noqa: S608 - our own names
    ]
