"""A bare environment: a clean HOME, a PATH with what README asks for, and a copy of the checkout."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from tests.process_groups import Started, started_group

ROOT: Final = Path(__file__).resolve().parents[2]
# What is left of a Debian beside git, make and Python: the Makefile calls these.
COREUTILS: Final = ("cat", "cksum", "tail")
STAMP: Final = "installed"


class Failed(Exception):
    """A step of the first hour did not end as it should."""


class Bare:
    """A copy of the checkout in ``folder``, and the environment in which its commands run.

    Without ``install`` its ``.venv`` sees the packages of the Python that runs this; with it, ``make run`` installs
    them by pip, with the options that this machine has for pip.
    """

    def __init__(self, folder: Path, *, install: bool) -> None:
        self.checkout = folder / "vskill"
        self.home = folder / "home"
        self._bin = folder / "bin"
        self.home.mkdir()
        self._copy()
        self._programs()
        if not install:
            self._borrow_packages()

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables of its commands."""
        pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        mine = Path.home() / ".config" / "pip" / "pip.conf"
        if mine.is_file():
            pip.setdefault("PIP_CONFIG_FILE", str(mine))
        return {"PATH": str(self._bin), "HOME": str(self.home), **pip}

    def _copy(self) -> None:
        # What is committed or will be, without what tools left in this checkout.
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        for name in filter(None, listed.stdout.decode().split("\0")):
            source = ROOT / name
            if source.is_file() and not source.is_symlink():
                target = self.checkout / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)

    def _programs(self) -> None:
        self._bin.mkdir()
        python = Path(sys.base_prefix) / "bin" / "python3"
        for name, program in {
            "python3": str(python if python.exists() else sys.executable),
            **{name: shutil.which(name) for name in ("git", "make", *COREUTILS)},
        }.items():
            if program is None:
                raise Failed(f"{name} is not installed")
            # No link, through which Python would look for its library in the wrong place.
            wrapper = self._bin / name
            wrapper.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
            wrapper.chmod(0o755)

    def _borrow_packages(self) -> None:
        self.run("python3", "-m", "venv", "--without-pip", ".venv")
        [packages] = (self.checkout / ".venv" / "lib").glob("python3*/site-packages")
        borrowed = [path for path in sys.path if path.endswith("site-packages")]
        (packages / "borrowed.pth").write_text("\n".join(borrowed) + "\n")
        stamp = self.run("python3", "-VV").strip() + " " + self.run("cksum", "requirements.txt").rpartition(" ")[0]
        (self.checkout / ".venv" / STAMP).write_text(f"{stamp}\n")

    def run(self, *command: str, **variables: str) -> str:
        """Run a command to its end and return what it printed; raise ``Failed`` where it did not succeed."""
        program = command[0] if "/" in command[0] else str(self._bin / command[0])
        ended = subprocess.run(
            [program, *command[1:]],
            cwd=self.checkout,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if ended.returncode:
            raise Failed(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout}")
        return ended.stdout

    def manage(self, *arguments: str, **variables: str) -> str:
        """Run a management command, as the README writes it."""
        return self.run(str(self.checkout / ".venv" / "bin" / "python"), "manage.py", *arguments, **variables)

    def make_run(self, port: int) -> AbstractContextManager[Started]:
        """Run ``make run`` as a terminal does; its whole group is killed at the end, if it is still there."""
        log = self.home / f"run-{time.monotonic_ns()}.log"
        command = [str(self._bin / "make"), "run", f"PORT={port}"]
        return started_group(command, self.checkout, self.environment, log)

    def processes(self) -> list[str]:
        """Return the command line of each process that runs from the copy."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            # A race: the process may end in between.
            with contextlib.suppress(OSError):
                if (folder / "cwd").readlink().is_relative_to(self.checkout):
                    found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        return found
