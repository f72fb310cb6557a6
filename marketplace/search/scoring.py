"""Say how well a document answers a query: BM25F over its fields, computed of the document alone.

Nothing of other documents goes into a score, so one that is published meanwhile moves no other, and cursors stay exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

# How much a term says in each field, and how many tokens such a field usually has.
_WEIGHTS: Final = {"name": 8.0, "tags": 4.0, "owner": 3.0, "repository": 2.0, "description": 2.0}
_USUAL: Final = {"name": 3, "tags": 4, "owner": 1, "repository": 2, "description": 20}
# The texts of skills are long and are not read: what was found in no other field is in the text.
_BODY: Final = 0.5
SCORED_FIELDS: Final = tuple(_WEIGHTS)
_LENGTH_COUNTS: Final = 0.5
_SATURATION: Final = 4.0
# A term that only begins a token.
_PREFIX: Final = 0.5
_STEPS: Final = 100
EXACT_SLUG: Final = 3
EXACT_NAME: Final = 2
BEGINS_NAME: Final = 1
_CLASS: Final = 1_000_000_000
_TIE: Final = 1000
_TRUSTED: Final = "clear"


def score(
    fields: Mapping[str, str],
    terms: Sequence[str],
    *,
    is_slug: bool,
    downloads: int,
    verdict: str,
    weights: Mapping[str, float] | None = None,
) -> int:
    """Return how well a document answers; higher is better, and never negative.

    ``fields`` are the ``SCORED_FIELDS`` of the document, ``terms`` those of the query, and ``weights`` how much each
    says, by default 1. ``is_slug`` says that the query is the slug of the skill. ``downloads`` and ``verdict`` decide
    between equals.
    """
    text = sum((weights or {}).get(term, 1.0) * _term(fields, term) for term in terms)
    tie = min(downloads.bit_length(), 40) * 10 + (5 if verdict == _TRUSTED else 0)
    return _class(fields["name"], terms, is_slug) * _CLASS + round(text * _STEPS) * _TIE + tie


def share(found: int, terms: int) -> float:
    """Return a score as a number above 0 and at most 1, for a query of so many ``terms``."""
    if found >= _CLASS:
        return 1 - 0.1 * (EXACT_SLUG - min(found // _CLASS, EXACT_SLUG))
    return max(0.0001, 0.7 * max(0, found) / (_STEPS * _TIE * max(1, terms) + _TIE))


def _term(fields: Mapping[str, str], term: str) -> float:
    found = 0.0
    for name in SCORED_FIELDS:
        held = fields[name]
        if term not in held:
            continue
        spaced = f" {held} "
        share = 1.0 if f" {term} " in spaced else _PREFIX if f" {term}" in spaced else 0.0
        if share:
            length = 1 - _LENGTH_COUNTS + _LENGTH_COUNTS * (held.count(" ") + 1) / _USUAL[name]
            found += _WEIGHTS[name] * share / length
    found = found or _BODY
    return found / (found + _SATURATION)


def _class(name: str, terms: Sequence[str], is_slug: bool) -> int:
    if is_slug:
        return EXACT_SLUG
    asked = " ".join(terms)
    if name == asked:
        return EXACT_NAME
    return BEGINS_NAME if name.startswith(asked) else 0
