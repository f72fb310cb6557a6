"""Search on PostgreSQL: text vectors with GIN over the documents, asked as ``postgresql_terms`` says.

GIN gives no order, so all that is found is read before the first is known. What is downloaded much has an index of its
own, which is asked first and is mostly enough.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from typing import Any, Final

from django.core.exceptions import EmptyResultSet
from django.db import connections, transaction
from django.db.models import Exists, OuterRef, QuerySet

from marketplace.models import SearchDocument, SkillEntry
from marketplace.search.documents import position_of
from marketplace.search.engine import DOCUMENTS, Alternatives, Among, Condition, FoundSkills, SearchEngine
from marketplace.search.postgresql_terms import NAMED, WORDS, LookedUpTerms, beginnings
from vskill.db import prepared_cursor

# Where the documents of skills begin that have an index of their own: those with 16 downloads.
_FIRST_POPULAR: Final = position_of(0, 16)
# As the index says it. What is tested for being true is nothing that the key of the documents is asked for.
_POPULAR: Final = f"(id >= {_FIRST_POPULAR}) IS TRUE"
# Each index with the vector and the documents that it has.
_INDEXES: Final = {
    f"{DOCUMENTS}_words": ("words", "TRUE"),
    f"{DOCUMENTS}_names": ("names", "TRUE"),
    f"{DOCUMENTS}_popular": ("words", _POPULAR),
}
# A function, because the planner overrates how many documents have one of some rare words, and would read all of them.
_NEAREST: Final = f"""
    SELECT id, skill_id FROM {DOCUMENTS}_nearest(%s::tsquery, %s::tsquery, %s::tsquery, %s, %s::bigint[], %s, %s)
"""  # noqa: S608 - our own names
_FOUND: Final = f"""
    SELECT is_named, id, skill_id FROM {DOCUMENTS}_found(
        %s::tsquery, %s::tsquery, %s, %s::tsquery, %s::tsquery, %s::tsquery, %s::tsquery, %s, %s
    ) ORDER BY is_named DESC, id DESC LIMIT %s
"""  # noqa: S608 - our own names
# The limit keeps PostgreSQL from reading all rows to join them: each is looked up by its key.
_WITH_ROWS: Final = f"""
    SELECT near.*, read.* FROM ({_FOUND}) AS near
    LEFT JOIN LATERAL (SELECT * FROM ({{rows}}) AS row (key) WHERE row.key = near.skill_id LIMIT 1) AS read ON TRUE
"""  # noqa: S608 - our own names
_HIGHEST_KEY: Final = 2**63 - 1
# The words of each vector that its table lacks.
_UNKNOWN: Final = {
    table: f"SELECT held.word FROM ts_stat('SELECT {vector} FROM {DOCUMENTS}') AS held "  # noqa: S608 - our own names
    f"WHERE NOT EXISTS (SELECT 1 FROM {table} AS known WHERE known.word = held.word)"
    for table, vector in ((WORDS, "words"), (NAMED, "names"))
}
_MISFILTERED: Final = f"filters IS DISTINCT FROM {DOCUMENTS}_filters_of(skill_id)"
# Nearly every document has words that begin with one of each six of these.
_FIRST_LETTERS: Final = string.ascii_lowercase + string.digits
_AT_ONCE: Final = 6


class PostgresqlEngine(SearchEngine):
    """GIN, asked for what is rare."""

    # All that have the words and the value are read, and sorted.
    most_among = 30_000

    def __init__(self, alias: str) -> None:
        """Begin with no term looked up."""
        super().__init__(alias)
        self._terms = LookedUpTerms(alias)

    def expect(self, terms: Iterable[str]) -> None:
        """Look up all of them by one statement."""
        self._terms.look_up(terms)

    @property
    def tables(self) -> list[str]:
        """Return no table: the vectors are columns of the documents."""
        return []

    def condition(self, wanted: Alternatives, in_names: bool) -> Condition | None:
        """Return a match of a vector."""
        possible = self._terms.possible(wanted)
        return self._beginnings(possible, f"{DOCUMENTS}.{_vector(in_names)}") if possible else None

    def unindexed(self, wanted: Alternatives, in_names: bool) -> Condition:
        """Return a match of a vector that is computed, which is in no index."""
        return [f"({DOCUMENTS}.{_vector(in_names)} || ''::tsvector) @@ %s::tsquery"], [beginnings(wanted)]

    def by_position(self, skills: QuerySet[SkillEntry]) -> QuerySet[SkillEntry]:
        """Follow the numbers of the documents."""
        return skills.order_by("-search_document__id")

    def below(self, skills: QuerySet[SkillEntry], position: int) -> QuerySet[SkillEntry]:
        """Compare the numbers of the documents."""
        return skills.filter(search_document__id__lt=position)

    def unasked(self, among: Sequence[Among]) -> Sequence[Among]:
        """Return none: what the index is not asked for is looked for in the documents that are found."""
        return among[:0]

    def nearest(
        self,
        alternatives: Alternatives,
        most: int,
        *,
        in_names: bool = False,
        among: Sequence[Among] = (),
        last: int | None = None,
    ) -> list[int]:
        """Read documents alone; joined, the skill of each would be looked up before any is sorted.

        ``in_names`` the names are asked, ``among`` by the same index, and of what is found, those up to ``last`` are
        taken.
        """
        wanted = self._terms.possible(alternatives)
        if not wanted:
            return []
        asked: list[Any] = [*self._terms.indexed(wanted), *_limits(among, last), [], in_names, most]
        with connections[self.alias].cursor() as cursor:
            cursor.execute(_NEAREST, asked)
            return [int(key) for _position, key in sorted(cursor.fetchall(), reverse=True)[:most]]

    def read(
        self,
        alternatives: Alternatives,
        most: int,
        skills: QuerySet[SkillEntry],
        columns: Sequence[str],
        *,
        names_first: bool = False,
        among: Sequence[Among] = (),
        last: int | None = None,
    ) -> FoundSkills:
        """Read all of it by one statement: much downloaded documents are found once, named or not.

        That are the ``most`` of what the ``alternatives`` find ``among`` those with all values, up to the key ``last``,
        ``names_first`` or not, and the ``columns`` of those that are among the ``skills``.
        """
        wanted = self._terms.possible(alternatives)
        if not wanted:
            return FoundSkills([], 0, {})
        try:
            # Written for this database; ``sql_with_params`` writes for the default one, which can be of another kind.
            rows, given = skills.values_list(*columns).query.get_compiler(self.alias).as_sql()
        except EmptyResultSet:
            return super().read(alternatives, most, skills, columns, names_first=names_first, among=among, last=last)
        asked = [*self._terms.indexed(wanted), names_first, *self._terms.indexed_names(wanted)]
        those, last = _limits(among, last)
        having = " & ".join(map(_filter, among if those is None else among[1:])) or None
        with prepared_cursor(self.alias) as cursor:
            cursor.execute(_WITH_ROWS.format(rows=rows), [*asked, those, having, last, most, most, *given])
            found = sorted(cursor.fetchall(), key=lambda one: one[:2], reverse=True)
        read = {key: (key, *others) for _named, _position, _key, key, *others in found if key is not None}
        return FoundSkills([one[2] for one in found], sum(one[0] for one in found), read)

    def some(self, alternatives: Alternatives, most: int, *, among: Sequence[Among] = ()) -> list[int]:
        """Read documents until there are enough: in their order, all would be read before the first is known."""
        wanted = self._terms.possible(alternatives)
        if among or not wanted:
            return self.nearest(alternatives, most, among=among)
        where, asked = self._beginnings(wanted, "words")
        with connections[self.alias].cursor() as cursor:
            text = f"SELECT skill_id FROM {DOCUMENTS} WHERE {' AND '.join(where)} LIMIT %s"  # noqa: S608 - our own names
            cursor.execute(text, [*asked, most])
            return [int(key) for (key,) in cursor.fetchall()]

    def is_frequent(self, alternatives: Alternatives) -> bool:
        """Return whether the sample has many documents with the one term of an alternative."""
        possible = self._terms.possible(alternatives)
        return any(len(terms) == 1 and self._terms.is_frequent(terms[0]) for terms in possible)

    def met(self, skills: QuerySet[SkillEntry], alternatives: Alternatives) -> QuerySet[SkillEntry]:
        """Look into the document of each skill: few are met until a page is full, where many have the terms."""
        documents = SearchDocument.objects.using(self.alias).filter(skill_id=OuterRef("pk"))
        # A document has no other column of this name, nor has a skill.
        where, asked = "(words || ''::tsvector) @@ %s::tsquery", [beginnings(alternatives)]
        return skills.filter(Exists(documents.extra(where=[where], params=asked)))  # noqa: S610 - constants and parameters

    def fault(self) -> str:
        """Count documents by the beginnings of their words, with the index and without it, and look up all words."""
        groups = [_FIRST_LETTERS[start : start + _AT_ONCE] for start in range(0, len(_FIRST_LETTERS), _AT_ONCE)]
        asked = [f"'{' | '.join(f'{one}:*' for one in group)}'::tsquery" for group in groups]
        with transaction.atomic(using=self.alias), connections[self.alias].cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
            for name, (vector, those) in _INDEXES.items():
                # What is computed is in no index, and all rows are read, or those of an index would be. One statement,
                # so that nothing is published in between.
                read = [f"COUNT(*) FILTER (WHERE ({vector} || ''::tsvector) @@ {one} AND {those})" for one in asked]
                indexed = [f"(SELECT COUNT(*) FROM {DOCUMENTS} WHERE {vector} @@ {one} AND {those})" for one in asked]  # noqa: S608 - our own names
                cursor.execute(f"SELECT {', '.join(read + indexed)} FROM {DOCUMENTS}")  # noqa: S608 - our own names
                found = cursor.fetchone()
                for group, there, known in zip(groups, found, found[len(groups) :], strict=False):
                    if there != known:
                        return f"{there} documents have {vector} that begin with one of {group}, {name} knows {known}"
            every = " UNION ALL ".join(_UNKNOWN.values())
            cursor.execute(f"SELECT COUNT(*) FROM ({every}) AS unknown")  # noqa: S608 - our own names
            (unknown,) = cursor.fetchone()
            cursor.execute(f"SELECT COUNT(*) FROM {DOCUMENTS} WHERE {_MISFILTERED}")  # noqa: S608 - our own names
            (misfiltered,) = cursor.fetchone()
        if misfiltered:
            return f"{misfiltered} documents have other filters than their skills"
        return f"{unknown} words of documents are not looked up" if unknown else ""

    def mend_filters(self) -> int:
        """Write those documents again: a trigger does the rest."""
        with connections[self.alias].cursor() as cursor:
            cursor.execute(f"UPDATE {DOCUMENTS} SET filters = NULL WHERE {_MISFILTERED}")  # noqa: S608 - our own names
            return int(cursor.rowcount)

    def rebuild(self) -> None:
        """Index the vectors again, and add the words that are not there."""
        with connections[self.alias].cursor() as cursor:
            for name in _INDEXES:
                cursor.execute(f"REINDEX INDEX {name}")
            for table, unknown in _UNKNOWN.items():
                cursor.execute(f"INSERT INTO {table} {unknown}")
        self.mend_filters()

    def _beginnings(self, wanted: Alternatives, vector: str) -> Condition:
        """Return the conditions for alternatives whose terms begin words."""
        where, asked = [f"{vector} @@ %s::tsquery"], beginnings(wanted)
        rare = [[term for term in terms if not self._terms.is_frequent(term)] for terms in wanted]
        if rare == [list(terms) for terms in wanted] or not all(rare):
            return where, [asked]
        # What is tested for being true is no condition that an index answers.
        return [*where, f"({vector} @@ %s::tsquery) IS TRUE"], [beginnings(rare), asked]


def _vector(in_names: bool) -> str:
    return "names" if in_names else "words"


def _limits(among: Sequence[Among], last: int | None) -> tuple[str | None, int]:
    """Return what the index is asked for of the values among which is searched, if anything, and the highest key."""
    is_asked = among and among[0].number <= PostgresqlEngine.most_among
    return _filter(among[0]) if is_asked else None, _HIGHEST_KEY if last is None else last


def _filter(among: Among) -> str:
    """Return a query of PostgreSQL for what the column ``filters`` has of a value, which can hold any character."""
    held = f"{among.facet}:{among.value}".replace("\\", "\\\\").replace("'", "''")
    return f"'{held}'"
