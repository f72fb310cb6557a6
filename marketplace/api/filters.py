"""The filters that the list and the searches of the API share, by the names of their parameters."""

from __future__ import annotations

from typing import Final

from marketplace.api.http import ApiCall, ApiError, parameter
from marketplace.catalog import SkillFilters

# By what client a search is asked for a publisher by another name.
_OWNER: Final = "owner"
_EXACT: Final = ("publisher", "verdict", "capability", "agent", "license", "tag")
OF_SEARCHES: Final = (*_EXACT, _OWNER)
OF_LISTS: Final = (*OF_SEARCHES, "prefix")


def filters_of(call: ApiCall) -> SkillFilters:
    """Return what a call of a list or search is narrowed down to, with its words ``q``.

    ``owner`` is another name of ``publisher``. Raises ``ApiError`` where both are given and differ.
    """
    given = {name: parameter(call, name) for name in OF_LISTS}
    owner, publisher = given.pop(_OWNER), given["publisher"]
    if owner and publisher and owner != publisher:
        raise ApiError(400, "The parameters owner and publisher are one filter, and have two values: send one of them.")
    return SkillFilters(query=parameter(call, "q"), **{**given, "publisher": publisher or owner})
