"""What the address of the list of skills says, and the addresses that its filters, orders and pages lead to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final
from urllib.parse import urlencode

LONGEST_QUERY: Final = 200
LONGEST_CHOICE: Final = 200
LONGEST_CURSOR: Final = 1_000

SORTS: Final[dict[str, str]] = {
    "relevance": "Best match",
    "newest": "Newest",
    "updated": "Updated",
    "downloads": "Downloads",
    "name": "Name",
}
VIEWS: Final[dict[str, str]] = {"cards": "Cards", "table": "Table"}
FACETS: Final[dict[str, str]] = {"verdict": "Verdict", "capability": "Asks for", "publisher": "Publisher"}


@dataclass(frozen=True)
class ListQuery:
    """One list of skills: what is looked for, filtered, ordered, shown, and where in it one stands.

    The address holds exactly what differs from the plain list, so that it can be shared; words that no control of the
    page could have written are left out instead of refused, because old addresses must keep working.
    """

    q: str = ""
    verdict: str = ""
    capability: str = ""
    publisher: str = ""
    sort: str = ""
    view: str = "cards"
    cursor: str = ""

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> ListQuery:
        """Read the parameters of a request."""

        def text(name: str, longest: int) -> str:
            # NUL cannot be stored in PostgreSQL, so no skill matches it; sent along it would be an error there.
            return str(given.get(name, "")).replace("\0", "").strip()[:longest]

        sort, view = text("sort", 20), text("view", 20)
        q = text("q", LONGEST_QUERY)
        return cls(
            q=q,
            verdict=text("verdict", LONGEST_CHOICE),
            capability=text("capability", LONGEST_CHOICE),
            publisher=text("publisher", LONGEST_CHOICE),
            sort=sort if sort in SORTS and (q or sort != "relevance") else "",
            view=view if view in VIEWS else "cards",
            cursor=text("cursor", LONGEST_CURSOR),
        )

    @property
    def order(self) -> str:
        """Return the order that applies: the best match first where something is looked for, else the newest."""
        return self.sort or ("relevance" if self.q else "newest")

    @property
    def filters(self) -> dict[str, str]:
        """Return the facets that a value was chosen of."""
        return {name: value for name in FACETS if (value := getattr(self, name))}

    def change(self, **changes: str) -> ListQuery:
        """Return the list with changes, from its start: a cursor belongs to the list that it was made for."""
        return replace(self, **{"cursor": "", **changes})

    def parameters(self) -> dict[str, str]:
        """Return what differs from the plain list."""
        plain = ListQuery()
        names = (one.name for one in fields(self))
        return {name: getattr(self, name) for name in names if getattr(self, name) != getattr(plain, name)}

    def href(self, **changes: str) -> str:
        """Return the address of this list with changes; see ``change``."""
        changed = self.change(**changes) if changes else self
        parameters = urlencode(changed.parameters())
        return f"?{parameters}" if parameters else "?"

    def unfiltered(self) -> str:
        """Return the address of the same search without any filter."""
        return self.href(**dict.fromkeys(FACETS, ""))

    def kept(self) -> list[tuple[str, str]]:
        """Return the parameters that a new search keeps: the filters, the order and the view."""
        return [(name, value) for name, value in self.change(q="").parameters().items() if name != "q"]

    def sort_links(self) -> list[dict[str, Any]]:
        """Return the orders that make sense for this list, with their addresses."""
        names = [name for name in SORTS if self.q or name != "relevance"]
        return [{"label": SORTS[n], "href": self.href(sort=n), "active": n == self.order} for n in names]

    def view_links(self) -> list[dict[str, Any]]:
        """Return the two ways to show the list; changing between them keeps one's place in it."""
        return [
            {"label": label, "href": replace(self, view=name).href(), "active": name == self.view}
            for name, label in VIEWS.items()
        ]
