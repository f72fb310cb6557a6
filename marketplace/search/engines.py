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
_LOOKED_AT: Final = 200
# A term in a query of PostgreSQL.
_BEGINNING: Final = "'{}':*"
_WHOLE: Final = "'{}'"
# Letters.
_SHORT: Final = 2
_FIELDS: Final = ("name", "tags", "owner", "repository", "description", "body")


def matching(
    skills: QuerySet[SkillEntry], alternatives: Sequence[Sequence[str]], *, in_names: bool = False, few: bool = False
) -> QuerySet[SkillEntry]:
    """Return the ``skills`` in which each term of one of ``alternatives`` begins a token, ``in_names`` of the name.

    The terms are those of ``query_terms``. Without any, that is none. With ``few``, the caller says that there are few
    ``skills``: the documents of these are read, and not what the index has of a word. The query cannot be part of
    another one; see ``keys``.
    """
    if not any(alternatives):
        return skills.none()
    # The join to the documents is made by a condition that is always true.
    joined = skills.filter(search_document__id__gte=0)
    if few:
        condition, asked = _unindexed(skills.db, alternatives, in_names)
        return joined.extra(where=[condition], params=asked)  # noqa: S610 - constants and parameters
    where, asked = _condition(skills.db, alternatives, in_names)
    tables = [_FTS] if _is_sqlite(skills.db) else []
    return joined.extra(tables=tables, where=where, params=asked)  # noqa: S610 - constants and parameters


def keys(alias: str, alternatives: Sequence[Sequence[str]]) -> RawSQL:
    """Return the keys of the skills that ``matching`` finds in the database ``alias``, as a part of another query."""
    where, asked = _condition(alias, alternatives, False)
    tables = f"{_DOCUMENTS}, {_FTS}" if _is_sqlite(alias) else _DOCUMENTS
    return RawSQL(f"SELECT {_DOCUMENTS}.skill_id FROM {tables} WHERE {' AND '.join(where)}", tuple(asked))  # noqa: S608, S611 - constants


def _is_sqlite(alias: str) -> bool:
    return connections[alias].vendor == "sqlite"


def _each(terms: Sequence[str], written: str, between: str) -> str:
    return f"({between.join(written.format(term) for term in terms)})"


def _condition(alias: str, alternatives: Sequence[Sequence[str]], in_names: bool) -> tuple[list[str], list[str]]:
    """Return the conditions of a query, in SQL, and their parameters."""
    wanted = [terms for terms in alternatives if terms]
    if _is_sqlite(alias):
        asked = " OR ".join(_each(terms, '"{}" *', " AND ") for terms in wanted)
        # With the sign, the index is read once and skills are looked up. Without it, SQLite may ask the index for each
        # skill, as it does where no order is wanted.
        where = [f"{_FTS} MATCH %s", f"{_DOCUMENTS}.id = +{_FTS}.rowid"]
        return where, [f"name : ({asked})" if in_names else asked]
    return _beginnings(f"{_DOCUMENTS}.{_vector(in_names)}", wanted)


def _beginnings(vector: str, wanted: Sequence[Sequence[str]]) -> tuple[list[str], list[str]]:
    """Return the conditions of PostgreSQL, and their parameters, for terms that begin tokens.

    Very many tokens begin with one or two letters, and the index would collect the documents of all of them. Where the
    other terms leave few, looking into these takes a hundredth of the time, and where they leave many, no more.
    """
    if len(wanted) == 1:
        short = [term for term in wanted[0] if len(term) <= _SHORT]
        others = [term for term in wanted[0] if len(term) > _SHORT]
        if short and others:
            # What is tested for being true is no condition that an index answers.
            where = [f"{vector} @@ %s::tsquery", f"({vector} @@ %s::tsquery) IS TRUE"]
            return where, [_tsquery([others]), _tsquery([short])]
    return [f"{vector} @@ %s::tsquery"], [_tsquery(wanted)]


def _vector(in_names: bool) -> str:
    return "names" if in_names else "words"


def _tsquery(alternatives: Sequence[Sequence[str]], term: str = _BEGINNING) -> str:
    return " | ".join(_each(terms, term, " & ") for terms in alternatives)


def _unindexed(alias: str, alternatives: Sequence[Sequence[str]], in_names: bool) -> tuple[str, list[str]]:
    """Return a condition that reads a document and no index, in SQL, and its parameters."""
    wanted = [terms for terms in alternatives if terms]
    if not _is_sqlite(alias):
        # What is computed is in no index.
        return f"({_DOCUMENTS}.{_vector(in_names)} || ''::tsvector) @@ %s::tsquery", [_tsquery(wanted)]
    fields = ("name",) if in_names else _FIELDS
    one = " OR ".join(f"instr(' ' || {_DOCUMENTS}.{name}, %s)" for name in fields)
    condition = " OR ".join(" AND ".join([f"({one})"] * len(terms)) for terms in wanted)
    return f"({condition})", [f" {term}" for terms in wanted for term in terms for _field in fields]


def by_position(skills: QuerySet[SkillEntry]) -> QuerySet[SkillEntry]:
    """Return skills that ``matching`` found in the order of their documents, much downloaded and new ones first.

    The engine reads in this order, so a slice costs no more than its rows.
    """
    if _FTS in skills.query.extra_tables:
        return skills.extra(order_by=[f"-{_FTS}.rowid"])
    return skills.order_by("-search_document__id")


def nearest(
    alias: str,
    alternatives: Sequence[Sequence[str]],
    most: int,
    *,
    in_names: bool = False,
    whole_words: bool = False,
) -> list[int] | None:
    """Return the keys of the first ``most`` skills in which the terms are, in the order of ``by_position``.

    That is whatever else is asked of them; ``in_names`` of the name alone, and with ``whole_words``, a term has to be a
    token and not only begin one.
    ``None`` where the engine of the database ``alias`` gives this order by itself: PostgreSQL would look up the skill
    of each document that has the words before it sorts them.
    """
    if _is_sqlite(alias) or not any(alternatives):
        return None
    vector, wanted = _vector(in_names), [terms for terms in alternatives if terms]
    where, asked = [f"{vector} @@ %s::tsquery"], [_tsquery(wanted, _WHOLE)]
    if not whole_words:
        where, asked = _beginnings(vector, wanted)
    text = f"SELECT skill_id FROM {_DOCUMENTS} WHERE {' AND '.join(where)} ORDER BY id DESC LIMIT %s"  # noqa: S608 - constants
    with connections[alias].cursor() as cursor:
        cursor.execute(text, [*asked, most])
        return [int(key) for (key,) in cursor.fetchall()]


def any_of(skills: QuerySet[SkillEntry]) -> bool:
    """Return whether ``matching`` found any skill."""
    if _is_sqlite(skills.db):
        return skills.exists()
    # Asked for one row alone, PostgreSQL reads documents until it meets one: it expects some of every word, so that it
    # reads all of them where there is none. For some hundred it asks the index.
    return bool(by_position(skills).values_list("pk", flat=True)[:_LOOKED_AT])


def below(skills: QuerySet[SkillEntry], position: int) -> QuerySet[SkillEntry]:
    """Return those of the skills that ``matching`` found whose documents have a lower number than ``position``."""
    if _FTS in skills.query.extra_tables:
        # The number in the index, so that it is read from there on.
        return skills.extra(where=[f"{_FTS}.rowid < %s"], params=[position])  # noqa: S610 - constants and a parameter
    return skills.filter(search_document__id__lt=position)
