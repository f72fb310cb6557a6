"""Put a view in the place of the search index from which a search never gets its last row."""

from __future__ import annotations

from typing import Final

WORD: Final = "endless"


def make_endless(namespace: str) -> list[str]:
    """Return the statements after which every search for ``WORD`` in the environment ``namespace`` is endless."""
    numbers = "WITH RECURSIVE numbers(i) AS (SELECT 0 UNION ALL SELECT (i + 1) % 1000 FROM numbers)"
    columns = f"i AS id, '{namespace}' AS namespace, '{WORD}' AS token, -1 AS skill_id, 1 AS weight"
    return [
        "ALTER TABLE marketplace_searchtoken RENAME TO the_tokens",
        f"CREATE VIEW marketplace_searchtoken AS {numbers} SELECT {columns} FROM numbers",  # noqa: S608 - our own names
    ]


MAKE_USUAL: Final = [
    "DROP VIEW marketplace_searchtoken",
    "ALTER TABLE the_tokens RENAME TO marketplace_searchtoken",
]
