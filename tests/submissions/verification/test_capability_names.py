"""Every capability has words on pages, and a place in the map of what a skill can touch."""

from __future__ import annotations

from marketplace.pages.wording import CAPABILITIES, DEEDS
from marketplace.pictures.reach import TARGETS
from submissions.verification.engine.judging import CAPABILITIES as BY_SIGN

# It touches nothing by itself.
TOUCHES_NOTHING = {"hides"}


def test_whatever_the_engine_of_the_product_calls_a_capability_has_words() -> None:
    assert set(BY_SIGN.values()) <= CAPABILITIES.keys()


def test_whatever_has_words_is_in_the_map_of_what_a_skill_can_touch() -> None:
    assert (CAPABILITIES.keys() | DEEDS.keys()) - TOUCHES_NOTHING == set().union(*TARGETS.values())
