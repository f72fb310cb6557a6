"""The longest modules are handed out first, and what is measured is what the next run sorts by."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import durations
from tests.durations import FILE, longest_first, write

ROOT = FILE.parent.parent


class Anything(pytest.Item):
    """A test of whatever name, which is only sorted."""

    def runtest(self) -> None:
        raise NotImplementedError


def test_every_measured_module_is_there() -> None:
    gone = [module for module in json.loads(FILE.read_text()) if not (ROOT / module).is_file()]
    assert gone == [], 'measure anew: make test DB=sqlite ARGS="-p tests.durations"'


def test_what_was_measured_decides_the_order_and_the_rest_keeps_its_own(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durations, "FILE", tmp_path / "durations.json")
    write({"quick.py": 1.4, "long.py": 7.6, "longest.py": 80.2})
    assert json.loads((tmp_path / "durations.json").read_text()) == {"longest.py": 80, "long.py": 8}

    names = ["new.py::a", "long.py::a", "quick.py::a", "longest.py::a", "longest.py::b"]
    items: list[pytest.Item] = [Anything.from_parent(request.node.parent, name="a", nodeid=name) for name in names]
    longest_first(items)
    in_order = ["longest.py::a", "longest.py::b", "long.py::a", "new.py::a", "quick.py::a"]
    assert [item.nodeid for item in items] == in_order
