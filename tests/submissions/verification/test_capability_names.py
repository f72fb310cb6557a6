"""Every capability has words on pages, and a place in the map of what a skill can touch."""

from __future__ import annotations

from marketplace.pages.wording import CAPABILITIES, DEEDS
from marketplace.pictures.reach import TARGETS
from marketplace.skills.capability_names import DEED_OF, name_of
from submissions.verification.engine.judging import CAPABILITIES as BY_SIGN

# It touches nothing by itself.
TOUCHES_NOTHING = {"hides"}


def test_whatever_the_engine_of_the_product_calls_a_capability_has_words() -> None:
    assert set(map(name_of, BY_SIGN.values())) <= CAPABILITIES.keys() | DEEDS.keys()


def test_a_thing_has_one_name_alone() -> None:
    assert set(DEED_OF.values()) <= DEEDS.keys()
    assert not (CAPABILITIES.keys() | DEED_OF.keys()) & DEEDS.keys()
    assert not CAPABILITIES.keys() & DEED_OF.keys()


def test_whatever_has_words_is_in_the_map_of_what_a_skill_can_touch() -> None:
    assert (CAPABILITIES.keys() | DEEDS.keys()) - TOUCHES_NOTHING == set().union(*TARGETS.values())
