"""Say what a search that finds nothing may have meant: the same words, each misspelt one as names here spell it."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from django.db.models import QuerySet

from marketplace.models import SkillEntry
from marketplace.search.engines import by_position, matching
from marketplace.search.text import query_terms
from marketplace.skills.visibility import listed_skills
from vskill.environments import WorkerEnv

# Each word costs a few look-ups in the index, and a longer query is not a name with a slip in it.
_MOST_WORDS: Final = 5
# A word is looked for among the names with a word that begins as it does, the most downloaded ones first.
_BEGINNINGS: Final = (3, 2, 1)
_NAMES: Final = 200
# Share of letters in common, as difflib counts it: one wrong, missing, doubled or swapped letter in a word of four.
_LEAST_LIKENESS: Final = 0.74


def did_you_mean(env: WorkerEnv, query: str) -> str:
    """Return the words of ``query`` with the misspelt ones replaced, so that something is found; '' where nothing is.

    Only names that lists show are looked at. Call it on a database thread.
    """
    terms = query_terms(query)
    if not 0 < len(terms) <= _MOST_WORDS:
        return ""
    skills = listed_skills(SkillEntry.objects.using(env.database).filter(namespace=env.name))
    words = [term if matching(skills, [term]).exists() else _nearest(skills, term) for term in terms]
    if words == terms or not all(words) or not matching(skills, words).exists():
        return ""
    return " ".join(words)


def _nearest(skills: QuerySet[SkillEntry], term: str) -> str:
    """Return the word of a name that is nearest to ``term``, or '' where none is near."""
    for length in _BEGINNINGS:
        start = term[:length]
        having = by_position(matching(skills, [start], in_names=True))
        names = having.values_list("search_document__name", flat=True)[:_NAMES]
        known = {word for name in names for word in name.split() if word.startswith(start)}
        if near := get_close_matches(term, sorted(known), n=1, cutoff=_LEAST_LIKENESS):
            return near[0]
    return ""
