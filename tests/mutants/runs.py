"""Copies of the project in which tests run against one mutant at a time."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final

from tests.mutants.rooms import ROOT

VENV: Final = ROOT / "build" / "mutants" / "venv"
REQUIREMENTS: Final = ROOT / "tests" / "mutants" / "requirements.txt"
COPIED: Final = ("vskill", "marketplace", "submissions", "tests", "docs", "manage.py", "pyproject.toml")


class Checkout:
    """A copy of the project below a temporary folder, which ``close`` deletes."""

    def __init__(self) -> None:
        """Copy the project as it is now, changes that are not committed included."""
        self._folder = Path(tempfile.mkdtemp(prefix="vskill-mutants-"))
        self._root = self._folder / "checkout"
        self._running: subprocess.Popen[bytes] | None = None
        self._lock = Lock()
        self.closed = False
        self._root.mkdir()
        for name in COPIED:
            if (ROOT / name).is_dir():
                # Without compiled files: Python takes one for that of a mutant of the same length and second.
                ignored = shutil.ignore_patterns("__pycache__", "node_modules", "screenshots")
                shutil.copytree(ROOT / name, self._root / name, ignore=ignored)
            else:
                shutil.copy(ROOT / name, self._root / name)

    def tests_pass(self, tests: Sequence[str], seconds: float, module: str = "", text: str = "") -> bool:
        """Return whether tests pass within ``seconds`` with the text of ``module`` replaced, which is undone after."""
        if not module:
            return self._run(tests, seconds)
        path = self._root / module
        original = path.read_text(encoding="utf-8")
        path.write_text(text, encoding="utf-8")
        try:
            return self._run(tests, seconds)
        finally:
            path.write_text(original, encoding="utf-8")

    def _run(self, tests: Sequence[str], seconds: float) -> bool:
        data = Path(tempfile.mkdtemp(dir=self._folder))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests]
        environment = {
            **os.environ,
            "DATABASE_URL": f"sqlite:///{data / 'vskill.sqlite3'}",
            "VSKILL_TEST_DATA_DIR": str(data),
            "TMPDIR": str(data),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        with self._lock:
            if self.closed:
                return False
            self._running = subprocess.Popen(
                command,
                cwd=self._root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # With a group of its own, so that all that the tests started can be ended with them.
                start_new_session=True,
            )
        try:
            return self._running.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            self._end()
            shutil.rmtree(data, ignore_errors=True)

    def _end(self) -> None:
        if self._running is not None:
            try:
                os.killpg(self._running.pid, signal.SIGKILL)
            except ProcessLookupError:
                return
            finally:
                self._running.wait()

    def close(self) -> None:
        """End tests that still run, and delete the copy."""
        with self._lock:
            self.closed = True
            self._end()
        shutil.rmtree(self._folder, ignore_errors=True)


def make_mutants(modules: Sequence[str], *, every: bool) -> dict[str, list[dict[str, Any]]]:
    """Return the mutants of each module as ``tests.mutants.make`` prints them."""
    command = [str(_python()), "-m", "tests.mutants.make", "every" if every else "one", *modules]
    printed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    found: dict[str, list[dict[str, Any]]] = json.loads(printed)
    return found


def _python() -> Path:
    """Return the interpreter that has cosmic-ray, installed into an environment of its own on first use."""
    python = VENV / "bin" / "python"
    stamp = VENV / "installed"
    wanted = REQUIREMENTS.read_text() + sys.version
    if not stamp.exists() or stamp.read_text() != wanted:
        print("Installing cosmic-ray into build/mutants/venv ...", file=sys.stderr, flush=True)
        venv.create(VENV, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", str(REQUIREMENTS)]
        subprocess.run(command, cwd=ROOT, check=True)
        stamp.write_text(wanted)
    return python
