"""The picture of the rooms in the map is the one that the imports give."""

from __future__ import annotations

from tests.rooms import PAGE, diagram, page


def test_the_picture_in_the_map_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.rooms --write"


def test_a_picture_shows_what_imports_what_and_leaves_out_what_follows_from_others() -> None:
    arrows = diagram("submissions").splitlines()
    assert "    messages --> queue" in arrows
    # By way of messages.
    assert "    intake --> queue" not in arrows
