"""What is mutated, with which tests, and what the report says; running the mutants themselves is for `make mutants`."""

from __future__ import annotations

import pytest

from tests.mutants.__main__ import KILLED, NOT_RUN, SURVIVED, Mutant, change, report
from tests.mutants.choose import Place, chosen
from tests.mutants.rooms import ROOMS, ROOT, Room
from tests.mutants.runs import Checkout

SOURCE = """\
def least(one: int | None, other: int) -> int | None:
    é: "str | None" = None
    return other if one is None or other < one else one
"""


def place(operator: str, line: int, start: int, end: int, occurrence: int = 0) -> Place:
    return Place(f"core/{operator}", occurrence, (line, start), (line, end))


LESS = [place(f"ReplaceComparisonOperator_Lt_{name}", 3, 41, 42) for name in ("Gt", "GtE", "Eq")]
OR = place("ReplaceOrWithAnd", 3, 32, 34)


def test_annotations_are_left_alone() -> None:
    annotations = [
        place("ReplaceBinaryOperator_BitOr_Add", 1, 19, 20),
        place("ReplaceBinaryOperator_BitOr_Add", 1, 46, 47, 1),
        place("ReplaceBinaryOperator_BitOr_Add", 2, 12, 13, 2),
    ]
    assert chosen("a.py", SOURCE, [*annotations, OR]) == [OR]


def test_one_replacement_of_an_operator_is_tried_and_always_the_same() -> None:
    first = chosen("a.py", SOURCE, [*LESS, OR])
    assert len(first) == 2
    assert OR in first
    assert chosen("a.py", SOURCE, [OR, *reversed(LESS)]) == first
    assert len({chosen(f"{name}.py", SOURCE, LESS)[0] for name in "abcdefghij"}) > 1


def test_every_replacement_is_tried_where_that_is_asked_for() -> None:
    assert set(chosen("a.py", SOURCE, [*LESS, OR], every=True)) == {*LESS, OR}


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.modules)
def test_every_module_that_is_mutated_has_tests(room: Room) -> None:
    assert room.paths()
    for module in room.paths():
        tests = room.tests_of(module)
        assert tests
        assert all((ROOT / path).is_file() for path in (module, *tests))


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.modules)
def test_what_a_room_leaves_out_is_there(room: Room) -> None:
    modules = {path.name for path in (ROOT / room.modules).glob("*.py")}
    tests = {path.name for folder in room.tests for path in (ROOT / folder).glob("*.py")}
    assert room.unmutated <= modules
    assert room.too_slow | room.last <= tests


def test_the_tests_of_a_module_itself_come_first_and_slow_ones_last() -> None:
    kv = ROOMS[0]
    names = [path.rpartition("/")[2] for path in kv.tests_of("vskill/kv/codec.py")]
    assert names[0] == "test_codec.py"
    assert names[-1] == "test_namespace.py"
    assert "test_processes.py" not in names


def test_the_report_counts_by_module_and_names_what_survived() -> None:
    mutants = [
        Mutant("a.py", "AddNot", 3, "", "- if x:\n+ if not x:", SURVIVED),
        *(Mutant("a.py", "AddNot", line, "", "", KILLED) for line in (5, 6, 7)),
        Mutant("b.py", "NumberReplacer", 1, "", "- 1\n+ 2", NOT_RUN),
    ]
    lines = report(mutants).splitlines()
    assert [line.split() for line in lines[1:4]] == [
        ["a.py", "4", "3", "1", "0", "75", "%"],
        ["b.py", "1", "0", "0", "1", "-"],
        ["sum", "5", "3", "1", "1", "75", "%"],
    ]
    assert lines[4:] == ["", "a.py:3 survived AddNot", "    - if x:", "    + if not x:"]


def test_a_change_is_told_by_the_lines_before_and_after() -> None:
    assert change(SOURCE, SOURCE.replace(" or ", " and ")) == (
        "- return other if one is None or other < one else one\n+ return other if one is None and other < one else one"
    )


@pytest.mark.slow
def test_tests_run_in_a_copy_where_a_mutant_changes_nothing_of_the_project() -> None:
    module, tests = "vskill/kv/partial_index.py", ["tests/vskill/kv/test_partial_index.py"]
    before = (ROOT / module).read_text(encoding="utf-8")
    checkout = Checkout()
    try:
        assert checkout.tests_pass(tests, 60)
        assert not checkout.tests_pass(tests, 60, module, "raise ValueError\n")
        assert not checkout.tests_pass(tests, 0.01)
        assert checkout.tests_pass(tests, 60)
    finally:
        checkout.close()
    assert (ROOT / module).read_text(encoding="utf-8") == before
