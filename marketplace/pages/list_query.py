"""The query string of the list of skills, and the links to its filters, sort orders and pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final
from urllib.parse import urlencode

from marketplace.skills.capability_names import name_of

LONGEST_QUERY: Final = 200
LONGEST_CHOICE: Final = 200
LONGEST_CURSOR: Final = 1_000

SORTS: Final[dict[str, str]] = {
    "relevance": "Best match",
    "newest": "Newest",
    "updated": "Updated",
    "downloads": "Downloads",
    "trending": "Trending",
    "name": "Name",
}
VIEWS: Final[dict[str, str]] = {"cards": "Cards", "table": "Table"}
FACETS: Final[dict[str, str]] = {
    "verdict": "Verdict",
    "capability": "Asks for",
    "agent": "Made for",
    "tag": "Tag",
    "license": "Licence",
    "publisher": "Publisher",
}


@dataclass(frozen=True)
class ListQuery:
    """The state of the list of skills: search words, filters, sort order, view, cursor and ticks.

    ``q`` are the search words; ``verdict``, ``capability``, ``publisher``, ``agent``, ``license`` and ``tag`` are
    the chosen facet values; ``sort`` is a key of ``SORTS`` or empty for the default, ``view`` a key of
    ``VIEWS``, ``cursor`` continues the list, and ``compare`` are the slugs that are ticked in it to be compared.

    A link holds only what differs from the default list, so links are short enough to share. Unknown values in a query
    string are ignored and not refused, because old links must keep working.
    """

    q: str = ""
    verdict: str = ""
    capability: str = ""
    publisher: str = ""
    agent: str = ""
    license: str = ""
    tag: str = ""
    sort: str = ""
    view: str = "cards"
    cursor: str = ""
    # A tuple always, because what is drawn of a list is kept by its query.
    compare: Sequence[str] = ()

    @classmethod
    def read(cls, given: Mapping[str, Any], compare: Iterable[str] = ()) -> ListQuery:
        """Return the list that the query parameters of a request describe; unknown and overlong values are dropped.

        ``compare`` are the slugs that are ticked, as ``chosen.read_chosen`` returns them.
        """

        def text(name: str, longest: int) -> str:
            # PostgreSQL cannot store NUL, so no skill matches it, and raises an error for it in a query.
            return str(given.get(name, "")).replace("\0", "").strip()[:longest]

        sort, view = text("sort", 20), text("view", 20)
        q = text("q", LONGEST_QUERY)
        chosen = {name: text(name, LONGEST_CHOICE) for name in FACETS}
        return cls(
            q=q,
            # As the values of the facet are named, of which it is one.
            **{**chosen, "capability": name_of(chosen["capability"])},
            # A search has this order by itself. Kept, it would be asked for when the words are gone.
            sort=sort if sort in SORTS and sort != "relevance" else "",
            view=view if view in VIEWS else "cards",
            cursor=text("cursor", LONGEST_CURSOR),
            compare=tuple(compare),
        )

    @property
    def order(self) -> str:
        """Return the sort order that applies: by default relevance for a search, and newest otherwise."""
        return self.sort or ("relevance" if self.q else "newest")

    @property
    def filters(self) -> dict[str, str]:
        """Return the chosen value of each filter that has one."""
        return {name: value for name in FACETS if (value := getattr(self, name))}

    def change(self, **changes: str) -> ListQuery:
        """Return the list with other parameters, from its first page, because a cursor belongs to one list."""
        return replace(self, **{"cursor": "", **changes})

    def parameters(self) -> list[tuple[str, str]]:
        """Return the parameters that differ from the default list; each skill that is ticked is one of its own."""
        held = vars(self)
        single = [(name, held[name]) for name, default in _DEFAULTS.items() if held[name] != default]
        return [*single, *(("compare", slug) for slug in self.compare)]

    def href(self, **changes: str) -> str:
        """Return the link to this list with other parameters; see ``change``."""
        changed = self.change(**changes) if changes else self
        parameters = urlencode(changed.parameters())
        return f"?{parameters}" if parameters else "?"

    def ticking(self, slug: str) -> str:
        """Return the link to the same page of the list with ``slug`` ticked, or not ticked if it is."""
        others = tuple(one for one in self.compare if one != slug)
        return replace(self, compare=others if slug in self.compare else (*others, slug)).href()

    def plain(self) -> str:
        """Return the link to the whole list, in which the same skills are ticked."""
        return ListQuery(compare=self.compare).href()

    def unfiltered(self) -> str:
        """Return the link to the same search without filters."""
        return self.href(**dict.fromkeys(FACETS, ""))

    def kept(self, without: str = "q") -> list[tuple[str, str]]:
        """Return the parameters that a form keeps which asks for ``without``, by default for other words."""
        return self.change(**{without: ""}).parameters()

    def sort_links(self) -> list[dict[str, Any]]:
        """Return the sort orders that apply to this list, with their links."""
        names = [name for name in SORTS if self.q or name != "relevance"]
        return [
            {"label": SORTS[n], "href": self.href(sort="" if n == "relevance" else n), "active": n == self.order}
            for n in names
        ]

    def view_links(self) -> list[dict[str, Any]]:
        """Return the views of the list with their links, which stay on the same page of the list."""
        return [
            {"label": label, "href": replace(self, view=name).href(), "active": name == self.view}
            for name, label in VIEWS.items()
        ]


_DEFAULTS: Final = {one.name: one.default for one in fields(ListQuery) if one.name != "compare"}
