"""The hooks before a commit check what `make lint` checks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
HOOKS: Final = ROOT / ".pre-commit-config.yaml"


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def hooks() -> list[dict[str, Any]]:
    return [hook for repo in read(HOOKS)["repos"] for hook in repo["hooks"]]


def recipe(target: str) -> list[str]:
    """Return the commands of a target of the Makefile, as a shell gets them."""
    _, _, after = (ROOT / "Makefile").read_text(encoding="utf-8").partition(f"\n{target}:")
    lines = after.partition("\n\n")[0].splitlines()[1:]
    commands = [line.strip().removeprefix("@").replace("$(BIN)", ".venv/bin") for line in lines]
    return [command for command in commands if not command.startswith("#")]


def test_pre_commit_accepts_its_configuration() -> None:
    command = [sys.executable, "-m", "pre_commit", "validate-config", str(HOOKS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # A key that is unknown or deprecated is a warning on the way out, and exit code 0.
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_hooks_run_the_commands_of_make_lint() -> None:
    assert len(recipe("lint")) == 3
    assert [hook["entry"].removeprefix("env ") for hook in hooks()] == recipe("lint")


def test_hooks_use_what_is_installed_and_fetch_nothing() -> None:
    assert {repo["repo"] for repo in read(HOOKS)["repos"]} == {"local"}
    assert {hook["language"] for hook in hooks()} == {"unsupported"}
    assert not any("additional_dependencies" in hook for hook in hooks())
