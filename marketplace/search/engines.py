"""Ask the full-text engine of a database: FTS5 on SQLite, GIN over text vectors on PostgreSQL.

This is the one place that knows which engine there is. Both find the skills in which every term begins some token, and
take several such searches as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.db import connections
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from marketplace.models import SkillEntry

_DOCUMENTS: Final = "marketplace_searchdocument"
_FTS: Final = "marketplace_searchfts"


def matching(
    skills: QuerySet[SkillEntry], alternatives: Sequence[Sequence[str]], *, in_names: bool = False
) -> QuerySet[SkillEntry]:
    """Return the ``skills`` in which each term of one of ``alternatives`` begins a token, ``in_names`` of the name.

    The terms are those of ``query_terms``. Without any, that is none. The query cannot be part of another one; see
    ``keys``.
    """
    if not any(alternatives):
        return skills.none()
    # The join to the documents is made by a condition that is always true.
    joined = skills.filter(search_document__id__gte=0)
    where, asked = _condition(skills.db, alternatives, in_names)
    tables = [_FTS] if _is_sqlite(skills.db) else []
    return joined.extra(tables=tables, where=where, params=[asked])  # noqa: S610 - constants and a parameter


def keys(alias: str, alternatives: Sequence[Sequence[str]]) -> RawSQL:
    """Return the keys of the skills that ``matching`` finds in the database ``alias``, as a part of another query."""
    where, asked = _condition(alias, alternatives, False)
    tables = f"{_DOCUMENTS}, {_FTS}" if _is_sqlite(alias) else _DOCUMENTS
    return RawSQL(f"SELECT {_DOCUMENTS}.skill_id FROM {tables} WHERE {' AND '.join(where)}", (asked,))  # noqa: S608, S611 - constants


def _is_sqlite(alias: str) -> bool:
    return connections[alias].vendor == "sqlite"


def _each(terms: Sequence[str], written: str, between: str) -> str:
    return f"({between.join(written.format(term) for term in terms)})"


def _condition(alias: str, alternatives: Sequence[Sequence[str]], in_names: bool) -> tuple[list[str], str]:
    """Return the conditions of a query, in SQL, and their parameter."""
    wanted = [terms for terms in alternatives if terms]
    if _is_sqlite(alias):
        asked = " OR ".join(_each(terms, '"{}" *', " AND ") for terms in wanted)
        where = [f"{_FTS} MATCH %s", f"{_DOCUMENTS}.id = {_FTS}.rowid"]
        return where, f"name : ({asked})" if in_names else asked
    column = "names" if in_names else "words"
    asked = " | ".join(_each(terms, "'{}':*", " & ") for terms in wanted)
    return [f"{_DOCUMENTS}.{column} @@ %s::tsquery"], asked


def by_position(skills: QuerySet[SkillEntry]) -> QuerySet[SkillEntry]:
    """Return skills that ``matching`` found in the order of their documents, much downloaded and new ones first.

    The engine reads in this order, so a slice costs no more than its rows.
    """
    if _is_sqlite(skills.db):
        return skills.extra(order_by=["-marketplace_searchfts.rowid"])
    return skills.order_by("-search_document__id")
