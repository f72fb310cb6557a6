"""Refuse a query string of a list that names what the list does not have, and say what it has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any, Final

from marketplace.errors import InvalidListing
from marketplace.pages.list_query import LONGEST_CHOICE, LONGEST_CURSOR, LONGEST_QUERY, SORTS, VIEWS, ListQuery
from marketplace.skills.listing import check_order
from vskill.hidden_characters import visible
from vskill.web.query_strings import unknown_parameter

OF_A_LIST: Final = tuple(one.name for one in fields(ListQuery))
OF_A_PUBLISHER: Final = ("cursor",)
_LONGEST: Final = {"q": LONGEST_QUERY, "cursor": LONGEST_CURSOR}


def check_query(given: Mapping[str, Any], names: Collection[str] = OF_A_LIST) -> None:
    """Raise ``InvalidListing`` for a parameter that is not among ``names``, an unknown order or view, or a long text.

    ``given`` are the parameters of a request. What others append to links, such as ``utm_source``, is left alone.
    """
    if fault := unknown_parameter(given, names):
        raise InvalidListing(fault)
    for name in names:
        length, longest = len(str(given.get(name, ""))), _LONGEST.get(name, LONGEST_CHOICE)
        if length > longest:
            raise InvalidListing(
                f"The parameter {name} has {length} characters. It can have {longest}: use fewer words."
            )
    sort, view, words = (str(given.get(name, "")).strip() for name in ("sort", "view", "q"))
    if sort:
        check_order(sort, SORTS, with_words=bool(words))
    if view and view not in VIEWS:
        raise InvalidListing(f"A list has no view {visible(view, 40)!r}. Choose one of: {', '.join(VIEWS)}.")
