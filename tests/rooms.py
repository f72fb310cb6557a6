"""The rooms of each app as a diagram for docs/architecture.md.

``python -m tests.rooms`` prints it, ``python -m tests.rooms --write`` puts it into the page.

A room is a folder of an app or a module at its top. An arrow says that one room imports another. An arrow that follows
from others is left out, and so are rooms that neither import nor are imported within their app.
"""

from __future__ import annotations

import sys
from typing import Final

from tests.product_modules import FLOORS, ROOT
from tests.test_architecture import imports_between_rooms, reached_from

PAGE: Final = ROOT / "docs" / "architecture.md"
BEGIN: Final = "<!-- rooms: written by python -m tests.rooms -->"
END: Final = "<!-- end of rooms -->"
# What Django finds by its name ties rooms together without being one.
LEFT_OUT: Final = ("apps", "migrations", "asgi", "wsgi", "urls", "templatetags")


def diagram(floor: str) -> str:
    """Return the rooms of one app as a Mermaid flowchart, importers above what they import."""
    graph = {
        room: {target for target in targets if _shown(floor, target)}
        for room, targets in imports_between_rooms(floor).items()
        if _shown(floor, room)
    }
    lines = ["flowchart TD"]
    for room in sorted(graph):
        direct = sorted(
            target
            for target in graph[room]
            if not any(target in reached_from(other, graph) for other in graph[room] - {target})
        )
        lines += [f"    {_label(room)} --> {_label(target)}" for target in direct]
    return "\n".join(lines)


def _shown(floor: str, room: str) -> bool:
    top, _, name = room.partition(".")
    return top == floor and bool(name) and name.split(".")[0] not in LEFT_OUT


def _label(room: str) -> str:
    return room.partition(".")[2].replace(".", "/")


def document() -> str:
    """Return the diagrams of all apps as they stand in the page."""
    parts = [f"`{floor}`:\n\n```mermaid\n{diagram(floor)}\n```" for floor in reversed(FLOORS)]
    return "\n\n".join(parts)


def page() -> str:
    """Return the page with the diagrams as the imports now are."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _old, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{document()}\n\n{END}{after}"


def main() -> None:
    """Print the diagrams, or write them into the page."""
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(f"{document()}\n")


if __name__ == "__main__":
    main()
