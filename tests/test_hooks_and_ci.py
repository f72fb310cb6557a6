"""The hooks before a commit check what `make lint` checks, and CI of a public host runs all that it promises."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
HOOKS: Final = ROOT / ".pre-commit-config.yaml"
WORKFLOWS: Final = ROOT / ".github" / "workflows"


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


def workflows() -> list[dict[str, Any]]:
    return [read(path) for path in sorted(WORKFLOWS.glob("*.yml"))]


def jobs() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = read(WORKFLOWS / "ci.yml")["jobs"]
    return found


def commands(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def used(job: dict[str, Any], action: str) -> dict[str, Any]:
    """Return the inputs that a job gives to an action."""
    inputs: dict[str, Any] = next(step["with"] for step in job["steps"] if step.get("uses", "").startswith(action))
    return inputs


def test_ci_tests_each_python_on_each_database() -> None:
    job = jobs()["test"]
    matrix = job["strategy"]["matrix"]
    assert set(itertools.product(matrix["python"], matrix["database"])) == set(
        itertools.product(["3.11", "3.12", "3.13"], ["sqlite", "postgres"])
    )
    # Nothing may be left out of the product of the two again.
    assert set(matrix) == {"python", "database"}
    assert used(job, "actions/setup-python@")["python-version"] == "${{ matrix.python }}"
    assert "make test DB=${{ matrix.database }}" in commands(job)


def test_ci_lints() -> None:
    assert "make lint" in commands(jobs()["lint"])


def test_ci_starts_for_pull_requests_and_for_main() -> None:
    # YAML 1.1 reads the key "on" as the truth value.
    starts = {str(key): value for key, value in read(WORKFLOWS / "ci.yml").items()}["True"]
    assert "pull_request" in starts
    assert starts["push"] == {"branches": ["main"]}


def test_no_step_of_ci_may_fail_unseen() -> None:
    assert "continue-on-error" not in (WORKFLOWS / "ci.yml").read_text(encoding="utf-8")
    assert [step for job in jobs().values() for step in job["steps"] if "if" in step] == []


def test_workflows_read_and_no_more() -> None:
    assert [workflow["permissions"] for workflow in workflows()] == [{"contents": "read"}]
    assert [job for workflow in workflows() for job in workflow["jobs"].values() if "permissions" in job] == []
    assert {used(job, "actions/checkout@")["persist-credentials"] for job in jobs().values()} == {False}


def test_workflows_pin_actions_to_a_commit() -> None:
    steps = [step for workflow in workflows() for job in workflow["jobs"].values() for step in job["steps"]]
    actions = [step["uses"] for step in steps if "uses" in step]
    assert actions
    assert [action for action in actions if not re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", action)] == []
