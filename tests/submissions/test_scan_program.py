"""``vskill-scan`` as it is installed: built from the project, run far from it, without settings of a server."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from submissions.scanning.outcomes import EXIT_CODES
from submissions.verification.verdict import Verdict
from tests.end_to_end.processes import ROOT
from tests.git_factory import skill_md
from tests.submissions.commands.test_scan import THIEF, write

# What pip does, without its network: the packages and the entry point in one folder.
BUILD = "import setuptools; setuptools.setup()"
RUN = (
    "import sys; from importlib.metadata import entry_points; "
    "[command] = entry_points(group='console_scripts', name='vskill-scan'); sys.exit(command.load()())"
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what an installation has of this project."""
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed, which builds the command")
    folder = tmp_path_factory.mktemp("program")
    source = folder / "source"
    for name in ("vskill", "marketplace", "submissions"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "requirements.txt", "README.md"):
        shutil.copy(ROOT / name, source / name)
    words = ["egg_info", "build_py", "--build-lib", str(folder / "installed")]
    subprocess.run([sys.executable, "-c", BUILD, "-q", *words], cwd=source, check=True, capture_output=True)
    shutil.copytree(source / "vskill.egg-info", folder / "installed" / "vskill.egg-info")
    shutil.rmtree(source)
    return folder / "installed"


def run(installed: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    home.mkdir(exist_ok=True)
    # A server's settings that would end any other command.
    of_a_server = {"VSKILL_DATA_DIR": "/nowhere/at/all", "DATABASE_URL": "nonsense", "PORT": "none"}
    variables = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), "PYTHONPATH": str(installed)}
    return subprocess.run(
        [sys.executable, "-P", "-c", RUN, *words],
        cwd=home,
        env={**variables, **of_a_server},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_author_scans_with_the_installed_command_and_nothing_stays_behind(installed: Path, tmp_path: Path) -> None:
    write(tmp_path, "honest", {"SKILL.md": skill_md("honest")})
    write(tmp_path, "thief", {"SKILL.md": skill_md("thief"), "scripts/run.py": THIEF})
    home = tmp_path / "home"
    done = run(installed, home, str(tmp_path / "honest"))
    assert (done.returncode, "CLEAR" in done.stdout) == (0, True), done.stderr
    held = run(installed, home, str(tmp_path / "thief"), "--json")
    assert held.returncode in {EXIT_CODES[Verdict.HELD], EXIT_CODES[Verdict.HELD_HIGH]}, held.stderr
    assert '"engine": "vskill"' in held.stdout
    assert list(home.iterdir()) == []


def test_the_command_says_what_is_wrong_with_its_arguments(installed: Path, tmp_path: Path) -> None:
    nothing = run(installed, tmp_path, str(tmp_path / "none"))
    assert nothing.returncode == 1
    assert "neither a folder nor a SKILL.md" in nothing.stderr
    assert run(installed, tmp_path, "--engine", "none", ".").returncode == 2
