"""Ask whether the index of the search holds what the documents say, and build it anew where it does not."""

from __future__ import annotations

import string
from typing import Final

from django.db import DatabaseError, connections, transaction

_DOCUMENTS: Final = "marketplace_searchdocument"
_FTS: Final = "marketplace_searchfts"
_VECTORS: Final = ("words", "names")
# Nearly every document has words that begin with one of each six of these.
_BEGINNINGS: Final = string.ascii_lowercase + string.digits
_AT_ONCE: Final = 6


def index_fault(alias: str) -> str:
    """Return what is wrong with the index of the search in the database ``alias``, empty where nothing is.

    SQLite compares every token of the index with the documents; what is published meanwhile waits for it. PostgreSQL
    counts the documents that have words with some beginnings, by its index and without it.
    """
    if connections[alias].vendor == "sqlite":
        return _sqlite_fault(alias)
    return _postgresql_fault(alias)


def rebuild_index(alias: str) -> None:
    """Build the index of the search from the documents, in the caller's transaction; publications wait for it."""
    with connections[alias].cursor() as cursor:
        if connections[alias].vendor == "sqlite":
            cursor.execute(f"INSERT INTO {_FTS}({_FTS}) VALUES ('rebuild')")  # noqa: S608 - our own names
        else:
            for vector in _VECTORS:
                cursor.execute(f"REINDEX INDEX {_DOCUMENTS}_{vector}")


def _sqlite_fault(alias: str) -> str:
    try:
        with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
            # With this rank, the index is compared with the documents as well, and not only with itself.
            cursor.execute(f"INSERT INTO {_FTS}({_FTS}, rank) VALUES ('integrity-check', 1)")  # noqa: S608 - our own names
    except DatabaseError as error:
        return str(error)
    return ""


def _postgresql_fault(alias: str) -> str:
    groups = [_BEGINNINGS[start : start + _AT_ONCE] for start in range(0, len(_BEGINNINGS), _AT_ONCE)]
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        for vector in _VECTORS:
            asked = [f"'{' | '.join(f'{one}:*' for one in group)}'::tsquery" for group in groups]
            # What is computed is in no index. One statement, so that nothing is published in between.
            read = [f"COUNT(*) FILTER (WHERE ({vector} || ''::tsvector) @@ {one})" for one in asked]
            indexed = [f"(SELECT COUNT(*) FROM {_DOCUMENTS} WHERE {vector} @@ {one})" for one in asked]  # noqa: S608 - our own names
            cursor.execute(f"SELECT {', '.join(read + indexed)} FROM {_DOCUMENTS}")  # noqa: S608 - our own names
            found = cursor.fetchone()
            for group, there, known in zip(groups, found, found[len(groups) :], strict=False):
                if there != known:
                    return f"{there} documents have {vector} that begin with one of {group}, the index knows {known}"
    return ""
