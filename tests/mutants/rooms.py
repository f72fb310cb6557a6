"""What is mutated, and which tests are about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Room:
    """A module or a folder of modules, with the files of tests that are about it.

    ``modules`` and ``tests`` are paths from the root of the project; those in ``tests`` may be folders, whose
    ``test_*.py`` are meant. ``unmutated`` are modules that others test or that have no behaviour, ``too_slow`` are
    tests of whole processes that would cost each mutant half a minute, ``last`` are slow ones that are needed: each
    by its file's name.
    """

    modules: str
    tests: tuple[str, ...]
    unmutated: frozenset[str] = frozenset()
    too_slow: frozenset[str] = frozenset()
    last: frozenset[str] = frozenset()

    def paths(self) -> list[str]:
        """Return the modules to mutate, sorted."""
        path = ROOT / self.modules
        found = [path] if path.is_file() else path.glob("*.py")
        return sorted(str(one.relative_to(ROOT)) for one in found if one.name not in {*self.unmutated, "__init__.py"})

    def tests_of(self, module: str) -> list[str]:
        """Return the files of tests to run for one of the modules: its own first, then the others of the room."""
        own = f"test_{Path(module).name}"
        names = [path for path in self._test_files() if path.name not in self.too_slow or path.name == own]
        names.sort(key=lambda path: (path.name != own, path.name in self.last, path))
        return [str(path.relative_to(ROOT)) for path in names]

    def _test_files(self) -> Iterator[Path]:
        for path in (ROOT / test for test in self.tests):
            yield from [path] if path.is_file() else sorted(path.glob("test_*.py"))


ROOMS: Final = (
    Room(
        "vskill/kv",
        ("tests/vskill/kv",),
        # An app's configuration, and the shape that a type checker sees.
        unmutated=frozenset({"apps.py", "port.py"}),
        too_slow=frozenset({"test_connections.py", "test_database_away.py", "test_pool.py", "test_processes.py"}),
        last=frozenset({"test_namespace.py"}),
    ),
    Room(
        "submissions/queue",
        ("tests/submissions/queue",),
        unmutated=frozenset({"admin.py"}),
        too_slow=frozenset({"test_environments.py", "test_sweeps_admin.py"}),
        last=frozenset({"test_consumer.py", "test_database.py"}),
    ),
    Room(
        "submissions/recovery",
        ("tests/submissions/recovery", "tests/submissions/commands/test_recover_stuck.py"),
        last=frozenset({"test_sweep.py"}),
    ),
    Room("submissions/verification/verdict.py", ("tests/submissions/verification/test_verdict.py",)),
)
